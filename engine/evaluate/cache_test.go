package evaluate

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/template"
)

// compiledAs is what comes of a session that is compiled.
func compiledAs(pins ...[]string) compile.Result {
	var all template.Pins
	for _, path := range pins {
		all, _ = all.With(path...)
	}
	return compile.Result{Template: &compile.Template{}, Pins: all}
}

// seen is what a package sees, as plain data.
type seen map[string]any

// Shape implements shaped.
func (s seen) Shape(pins template.Pins) template.Key { return template.Shape(map[string]any(s), pins) }

func viewWith(key string, value any) seen {
	return seen{"cr": map[string]any{key: value}}
}

func TestAShapeIsCompiledOnce(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		result compile.Result
		views  []seen
		want   []fallback
	}{
		"other values have the same shape": {
			compiledAs(), []seen{viewWith("a", "x"), viewWith("a", "y"), viewWith("a", int64(1))},
			[]fallback{unseen, "", unseen},
		},
		"a pinned value is part of the shape": {
			compiledAs([]string{"cr", "a"}), []seen{viewWith("a", "x"), viewWith("a", "y"), viewWith("a", "x"), viewWith("a", "y"), viewWith("b", "x")},
			[]fallback{unseen, unseen, "", "", unseen},
		},
		"a faulty session says nothing of its shape": {
			compile.Result{Pins: template.Pins{}}, []seen{viewWith("a", "x"), viewWith("a", "y")},
			[]fallback{unseen, unseen},
		},
		"nor does one that its own template has no answer for": {
			compile.Result{Pins: template.Pins{}, Untranslated: []compile.Reason{{}}, Inconclusive: true}, []seen{viewWith("a", "x"), viewWith("a", "y")},
			[]fallback{unseen, unseen},
		},
		"what does not translate is not tried again": {
			compile.Result{Pins: template.Pins{}, Untranslated: []compile.Reason{{}}}, []seen{viewWith("a", "x"), viewWith("a", "y")},
			[]fallback{unseen, untranslated},
		},
		"nor for ever new values": {
			compile.Result{Pins: compiledAs([]string{"cr", "a"}).Pins, Untranslated: []compile.Reason{{}}},
			[]seen{viewWith("a", "1"), viewWith("a", "2"), viewWith("a", "3"), viewWith("a", "4"), viewWith("a", "5")},
			[]fallback{unseen, unseen, unseen, unseen, untranslated},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCache(template.Pins{}, 1<<20, (*Metrics)(nil).of("shop"))
			var got []fallback
			for i, view := range row.views {
				at := c.placeOf(view, "town", time.Unix(int64(i)*3600, 0))
				_, why := c.template(at)
				if why == unseen {
					c.compiled(at, view, row.result)
				}
				got = append(got, why)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestANamespaceThatMakesManyShapesCostsNobodyElse(t *testing.T) {
	t.Parallel()
	const room = 200
	c := newCache(template.Pins{}, room*(entryBytes+compiledAs().Template.Size()), (*Metrics)(nil).of("shop"))
	now := time.Unix(0, 0)
	ask := func(namespace, key string) fallback {
		view := viewWith(key, "x")
		at := c.placeOf(view, namespace, now)
		_, why := c.template(at)
		if why == unseen {
			c.compiled(at, view, compiledAs())
		}
		return why
	}
	for i := range 10 {
		ask("good", fmt.Sprint("good", i))
	}
	counts := map[fallback]int{}
	for i := range 10_000 {
		now = now.Add(100 * time.Millisecond)
		counts[ask("hostile", fmt.Sprint("h", i/2))]++
		if i%100 == 0 {
			ask("hostile", fmt.Sprint("other", i))
		}
	}
	if n := counts[unseen]; n > compileBurst+1000*compilesPerSecond+1 {
		t.Errorf("%d sessions of a namespace were compiled within 1,000 s", n)
	}
	if c.used > c.limit {
		t.Errorf("%d bytes are used of %d", c.used, c.limit)
	}
	for i := range 10 {
		if why := ask("good", fmt.Sprint("good", i)); why != "" {
			t.Errorf("template %d of another namespace is lost: %s", i, why)
		}
	}
	sum := 0
	for _, o := range c.owners {
		sum += o.bytes
	}
	if sum != c.used || len(c.entries)*entryBytes > c.limit {
		t.Errorf("%d bytes of owners, %d used, %d entries", sum, c.used, len(c.entries))
	}
}

// What a namespace has to pin for its own odd values costs nobody else a compilation, and what it found out for values that
// others have as well helps them.
func TestPinsOfANamespaceCostNobodyElse(t *testing.T) {
	t.Parallel()
	pinned := compiledAs([]string{"cr", "a"})
	failed := compile.Result{Pins: pinned.Pins, Untranslated: []compile.Reason{{}}}
	for name, hostile := range map[string]compile.Result{"odd values are pinned": pinned, "odd values do not translate": failed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCache(template.Pins{}, 1<<20, (*Metrics)(nil).of("shop"))
			now := time.Unix(0, 0)
			ask := func(namespace, value string, r compile.Result) fallback {
				now = now.Add(time.Hour)
				view := viewWith("a", value)
				at := c.placeOf(view, namespace, now)
				_, why := c.template(at)
				if why == unseen {
					c.compiled(at, view, r)
				}
				return why
			}
			for i := range 10 {
				ask("hostile", fmt.Sprint("odd", i), hostile)
			}
			counts := map[fallback]int{}
			for i := range 30 {
				counts[ask(fmt.Sprint("good", i%3), fmt.Sprint("value", i), compiledAs())]++
			}
			if diff := cmp.Diff(map[fallback]int{unseen: 1, "": 29}, counts); diff != "" {
				t.Errorf("what others were answered (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the same value has one template for all", func(t *testing.T) {
		t.Parallel()
		c := newCache(template.Pins{}, 1<<20, (*Metrics)(nil).of("shop"))
		var got []fallback
		for i := range 12 {
			view := viewWith("a", fmt.Sprint("value", i%2))
			at := c.placeOf(view, fmt.Sprint("town", i), time.Unix(int64(i)*3600, 0))
			_, why := c.template(at)
			if why == unseen {
				c.compiled(at, view, pinned)
			}
			got = append(got, why)
		}
		if diff := cmp.Diff(append([]fallback{unseen, unseen}, make([]fallback, 10)...), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a namespace has one choice of pins for others to try", func(t *testing.T) {
		t.Parallel()
		c := newCache(template.Pins{}, 1<<20, (*Metrics)(nil).of("shop"))
		for i := range 20 {
			view := seen{"cr": map[string]any{"a": fmt.Sprint(i), "b": "x", "c": "x"}}
			at := c.placeOf(view, fmt.Sprint("town", i%2), time.Unix(int64(i)*3600, 0))
			if _, why := c.template(at); why == unseen {
				c.compiled(at, view, compiledAs([]string{"cr", []string{"a", "b", "c"}[i%3]}))
			}
			if n := len(c.refined[at.shape]); n > 2 {
				t.Fatalf("there are %d", n)
			}
		}
	})
}
