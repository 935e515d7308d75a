package template

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// must returns a call that there is.
func must(t testing.TB, name string, args ...*Node) *Node {
	t.Helper()
	n, err := Call(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestANodeIsWhatItSaysOverData(t *testing.T) {
	t.Parallel()
	data := map[string]any{"cr": map[string]any{"name": "shop", "ports": []any{int64(80), int64(443)}, "on": true, "ratio": 0.5}}
	name, port := Reference("cr", "name"), Reference("cr", "ports", "1")
	rows := []struct {
		reason string
		node   *Node
		want   any
	}{
		{"a constant is itself", Constant(int64(3)), int64(3)},
		{"a reference follows names and indices", port, int64(443)},
		{"a float passes through", Reference("cr", "ratio"), 0.5},
		{"a reference may lead to a struct", Reference("cr", "ports"), []any{int64(80), int64(443)}},
		{"objects and lists are built", Object([]string{"b", "a"}, []*Node{name, List([]*Node{port, Constant("x")})}), map[string]any{"b": "shop", "a": []any{int64(443), "x"}}},
		{"calls nest", must(t, "strings.ToUpper", must(t, "+", name, Constant("-x"))), "SHOP-X"},
		{"numbers have their decimal places", must(t, "interpolation", must(t, "/", port, Constant(int64(4)))), "110.75"},
		{"and are what an object has", must(t, "number", must(t, "/", port, Constant(int64(4)))), 110.75},
		{"an integral one is an integer", must(t, "number", must(t, "/", port, Constant(int64(1)))), int64(443)},
		{"YAML has the order of the fields", must(t, "yaml.Marshal", Object([]string{"b", "a", "e", "l"}, []*Node{name, Constant("yes"), Object(nil, nil), List([]*Node{port})})), "b: shop\na: \"yes\"\ne: {}\nl:\n  - 443\n"},
		{"a call of constants is a constant", must(t, "+", Constant(int64(1)), Constant(int64(2))), int64(3)},
		{"JSON has the order of the fields, and no escapes of HTML", must(t, "json.Marshal", Object([]string{"b", "a", "e", "l"}, []*Node{name, Constant("<&>"), Object(nil, nil), List(nil)})), `{"b":"shop","a":"<&>","e":{},"l":[]}`},
	}
	for _, row := range rows {
		got, err := row.node.Eval(data)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
		text, err := json.Marshal(row.node)
		if err != nil {
			t.Fatal(err)
		}
		var read Node
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %s: %v", row.reason, text, err)
		}
		if got, err := read.Eval(data); err != nil || !cmp.Equal(row.want, got) {
			t.Errorf("%s: after JSON it is %v, %v", row.reason, got, err)
		}
	}
}

func TestANodeWithoutAnAnswerSaysSo(t *testing.T) {
	t.Parallel()
	rows := []struct {
		reason string
		node   *Node
	}{
		{"a field is missing", Reference("no")},
		{"an element is missing", Reference("list", "7")},
		{"a path goes through a scalar", Reference("n", "x")},
		{"an operand is of another kind", must(t, "+", Reference("n"), Reference("list"))},
		{"a part of an object has none", Object([]string{"a"}, []*Node{Reference("no")})},
		{"a text is repeated too often", must(t, "*", Constant("ab"), Reference("many"))},
		{"an empty text is repeated more often than CUE does", must(t, "*", Reference("many"), Constant(""))},
		{"a text is repeated too often by a function", must(t, "strings.Repeat", Constant("ab"), Reference("many"))},
		{"an index is beyond the list", must(t, "index", Reference("list"), Reference("many"))},
		{"a float is not written as JSON", must(t, "json.Marshal", Reference("f"))},
	}
	data := map[string]any{"n": int64(1), "f": 1.5, "list": []any{}, "many": int64(1_000_000_000)}
	for _, row := range rows {
		if got, err := row.node.Eval(data); !errors.Is(err, ErrFallback) {
			t.Errorf("%s: it is %v, %v", row.reason, got, err)
		}
		if NewEvaluation(data, 0).True([]*Node{row.node}) {
			t.Errorf("%s: it counts as true", row.reason)
		}
	}
}

func TestACallThatThereIsNotErrs(t *testing.T) {
	t.Parallel()
	rows := []struct {
		reason, name, want string
		args               []*Node
	}{
		{"an unknown operation", "strings.No", "operation strings.No: not known", nil},
		{"too few arguments", "+", "operation +: 1 arguments, want 2", []*Node{Constant("a")}},
		{"a pattern that rests on data", "=~", "operation =~: the regular expression depends on data", []*Node{Constant("a"), Reference("p")}},
		{"constants that have no answer", "div", "operation div: no answer without CUE", []*Node{Constant(int64(1)), Constant(int64(0))}},
	}
	for _, row := range rows {
		if _, err := Call(row.name, row.args...); err == nil || err.Error() != row.want {
			t.Errorf("%s: %v, want %s", row.reason, err, row.want)
		}
	}
}

func TestAShapeIsWhatThereIsAndNotItsValues(t *testing.T) {
	t.Parallel()
	pins, _ := Pins{}.With("spec", "mode")
	pins, _ = pins.With("spec", "ports", "0", "name")
	shop := func(change func(spec map[string]any)) Key {
		spec := map[string]any{"mode": "a", "image": "web", "size": int64(1), "on": true, "ports": []any{map[string]any{"name": "http", "port": int64(1)}}, "none": nil}
		change(spec)
		return Shape(map[string]any{"spec": spec}, pins)
	}
	of := shop(func(map[string]any) {})
	rows := []struct {
		reason string
		same   bool
		change func(spec map[string]any)
	}{
		{"another text", true, func(s map[string]any) { s["image"] = "api" }},
		{"another number", true, func(s map[string]any) { s["size"] = int64(9) }},
		{"another value of what is pinned", false, func(s map[string]any) { s["mode"] = "b" }},
		{"another value of what is pinned in a list", false, func(s map[string]any) { s["ports"].([]any)[0].(map[string]any)["name"] = "x" }},
		{"another value beside it", true, func(s map[string]any) { s["ports"].([]any)[0].(map[string]any)["port"] = int64(2) }},
		{"another boolean", false, func(s map[string]any) { s["on"] = false }},
		{"another kind", false, func(s map[string]any) { s["size"] = "1" }},
		{"a float that is an integer", true, func(s map[string]any) { s["size"] = 9.0 }},
		{"a float that is none", false, func(s map[string]any) { s["size"] = 1.5 }},
		{"null for nothing", false, func(s map[string]any) { delete(s, "none") }},
		{"one more field", false, func(s map[string]any) { s["more"] = "x" }},
		{"one more element", false, func(s map[string]any) { s["ports"] = append(s["ports"].([]any), "x") }},
	}
	for _, row := range rows {
		if same := shop(row.change) == of; same != row.same {
			t.Errorf("%s: the shape is the same: %v, want %v", row.reason, same, row.same)
		}
	}
	if _, added := pins.With("spec", "ports", "3", "name"); added || !pins.Has("spec", "ports", "5", "name") || pins.Has("spec") {
		t.Error("indices of elements do not count for all elements")
	}
	if diff := cmp.Diff([][]string{{"spec", "mode"}, {"spec", "ports", "[]", "name"}}, pins.Paths()); diff != "" {
		t.Errorf("the paths of the pins (-want +got):\n%s", diff)
	}
}

// FuzzNode feeds whatever another process may have written.
func FuzzNode(f *testing.F) {
	for _, text := range []string{`{"v":1}`, `{"p":["a","0"]}`, `{"k":["x"],"a":[{"v":"y"}]}`, `{"c":"+","a":[{"p":["a"]},{"f":1.5}]}`, `{"c":"json.Marshal","a":[{"l":true,"a":[{"b":"eA=="}]}]}`, `{"c":"yaml.Marshal","a":[{"k":["x"],"a":[{"p":["a"]}]}]}`, `{"c":"/","a":[{"d":"1.50"},{"v":3}]}`, `{"d":"1e99999"}`, `{"a":[null]}`, `{"v":{}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n Node
		if json.Unmarshal([]byte(text), &n) != nil {
			return
		}
		got, err := n.Eval(map[string]any{"a": "x"})
		written, failed := json.Marshal(&n)
		if failed != nil {
			t.Fatal(failed)
		}
		var again Node
		if failed := json.Unmarshal(written, &again); failed != nil {
			t.Fatalf("%s: %v", written, failed)
		}
		if same, err2 := again.Eval(map[string]any{"a": "x"}); !cmp.Equal(withTexts(got), withTexts(same)) || !errors.Is(err2, err) {
			t.Errorf("%s is %v, %v, and after JSON %v, %v", text, got, err, same, err2)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	labels := Object([]string{"app", "tier"}, []*Node{Reference("cr", "name"), Constant("web")})
	node := Object([]string{"kind", "metadata", "spec"}, []*Node{
		Constant("Deployment"),
		Object([]string{"name", "labels"}, []*Node{must(b, "interpolation", Reference("cr", "name"), Constant("-web")), labels}),
		Object([]string{"replicas", "selector"}, []*Node{Reference("cr", "size"), Object([]string{"matchLabels"}, []*Node{labels})}),
	})
	data := map[string]any{"cr": map[string]any{"name": "shop", "size": int64(3)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := node.Eval(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkShape(b *testing.B) {
	data := map[string]any{"cr": map[string]any{"metadata": map[string]any{"name": "a", "namespace": "b", "uid": "c", "generation": int64(3)}, "spec": map[string]any{"image": "x", "replicas": int64(2), "ports": []any{int64(1), int64(2)}, "env": map[string]any{"A": "b", "C": "d"}}}}
	pins, _ := Pins{}.With("cr", "spec", "image")
	b.ReportAllocs()
	for b.Loop() {
		Shape(data, pins)
	}
}

// A map may have a name that looks like the index of an element.
func TestAFieldWhoseNameIsANumberIsPinned(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"80", "007", "-1", "+5", "a"} {
		pins, _ := Pins{}.With("cr", "ports", name)
		of := func(value string) Key {
			return Shape(map[string]any{"cr": map[string]any{"ports": map[string]any{name: value}, "name": value}}, pins)
		}
		if of("x") == of("y") || !pins.Has("cr", "ports", name) || !pins.Below("cr").Below("ports").Below(name).Has() {
			t.Errorf("the value of %q is no part of the shape", name)
		}
	}
}

// Data that is no unstructured content comes from a caller in Go, and has to have keys of its own all the same.
func TestOtherDataHasAnotherKeyForEachValue(t *testing.T) {
	t.Parallel()
	keys := map[Key]any{}
	for _, v := range []any{
		map[string]string{"a": "b c:d"}, map[string]string{"a": "b", "c": "d"}, map[string]any{"a": "b", "c": "d"}, map[string]string{},
		[]string{"a b"}, []string{"a", "b"}, []any{"a", "b"}, []string{}, [2]string{"a", "b"},
		map[string]map[string]string{"a": {"b": "c d:e"}}, map[string]map[string]string{"a": {"b": "c", "d": "e"}},
		map[string][]any{"a": {int64(5)}}, map[string][]any{"a": {int32(5)}}, map[string][]any{"a": {5.5}}, map[string][]any{"a": {"5"}}, map[string][]any{"a": {nil}},
		int32(5), int64(5), uint(5), []byte("a"), "a",
	} {
		key := Shape(v, Everything)
		if other, known := keys[key]; known {
			t.Errorf("%#v and %#v have one key", v, other)
		}
		if key != Shape(v, Everything) {
			t.Errorf("%#v has two keys", v)
		}
		keys[key] = v
	}
}
