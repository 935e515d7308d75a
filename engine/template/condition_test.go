package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// large is a condition: that a size is larger than five.
func large(t testing.TB) *Node {
	t.Helper()
	return must(t, ">", Reference("size"), Constant(int64(5)))
}

// conditional returns pins with a path and conditions.
func conditional(t testing.TB, conditions ...*Node) Pins {
	t.Helper()
	pins, _ := Pins{}.With("mode")
	for _, c := range conditions {
		var err error
		if pins, _, err = pins.WithCondition(c); err != nil {
			t.Fatal(err)
		}
	}
	return pins
}

func TestAShapeHasTheOutcomeOfAConditionAndNotItsValues(t *testing.T) {
	t.Parallel()
	pins := conditional(t, large(t))
	of := func(size any) Key { return Shape(map[string]any{"mode": "a", "size": size}, pins) }
	rows := []struct {
		reason string
		a, b   any
		same   bool
	}{
		{"both are larger", int64(6), int64(7), true},
		{"neither is", int64(1), int64(5), true},
		{"one of them is", int64(5), int64(6), false},
		{"a text has another kind, and no answer", int64(5), "5", false},
		{"no answer is no outcome, but texts are alike", "a", "b", true},
	}
	for _, row := range rows {
		if same := of(row.a) == of(row.b); same != row.same {
			t.Errorf("%s: the shape is the same: %v, want %v", row.reason, same, row.same)
		}
	}
	missing := Shape(map[string]any{"mode": "a"}, pins)
	if missing == of(int64(1)) || missing != Shape(map[string]any{"mode": "a"}, pins) {
		t.Error("a size that is missing is no shape of its own")
	}
}

func TestPinsKeepTheirConditions(t *testing.T) {
	t.Parallel()
	first, second := large(t), must(t, "!", Reference("on"))
	one, both := conditional(t, first), conditional(t, second, first)
	if _, added, err := one.WithCondition(large(t)); added || err != nil {
		t.Errorf("an equal condition is added: %v, %v", added, err)
	}
	further, _ := one.With("other")
	if len(further.Conditions()) != 1 {
		t.Error("one more path has removed the condition")
	}
	if united, more := one.Union(both); !more || len(united.Conditions()) != 2 {
		t.Errorf("a union has %d conditions", len(united.Conditions()))
	}
	if _, more := both.Union(one); more {
		t.Error("a union with less has more")
	}
	if one.Equal(both) || both.Equal(one) || !both.Equal(conditional(t, first, second)) {
		t.Error("pins are equal that are not, or not those that are")
	}
	text, err := both.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var read Pins
	if err := read.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	if _, more := both.Union(read); more || len(read.Conditions()) != 2 {
		t.Error("pins that were written and read are others")
	}
	if diff := cmp.Diff(both.Paths(), read.Paths()); diff != "" {
		t.Errorf("the paths of pins that were read (-want +got):\n%s", diff)
	}
	data := map[string]any{"mode": "a", "size": int64(6), "on": true}
	if Shape(data, both) != Shape(data, read) {
		t.Error("the shape by pins that were read is another one")
	}
	for _, text := range []string{`{"conditions":["{"]}`, `{"conditions":["{\"c\":\"no\"}"]}`, `[]`} {
		if err := new(Pins).UnmarshalBinary([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
