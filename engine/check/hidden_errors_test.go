package check

import (
	"strings"
	"testing"
	"testing/fstest"

	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/source"
)

// TestOptionalFieldsWithDefaultsAreCompiledOnceEach: nearly each case has another set of them, and a compilation for each set
// would be one for each case.
func TestOptionalFieldsWithDefaultsAreCompiledOnceEach(t *testing.T) {
	t.Parallel()
	spec, data := &strings.Builder{}, &strings.Builder{}
	for name := range strings.SplitSeq("abcdefghijkl", "") {
		spec.WriteString("\t" + name + "?: string\n")
		data.WriteString("\t\t" + name + ": *cr.spec." + name + ` | "none"` + "\n")
	}
	text := `package shop

import "operetta.dev/schemas/operator"

operator.#Controller
group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _

#Spec: {
` + spec.String() + `}
components: config: objects: configmap: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: {
` + data.String() + `	}
}
`
	s, err := source.Loader{}.Module("shop", "", "shop", fstest.MapFS{"shop/shop.cue": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	c, unmade := newChecker(p, Options{})
	if unmade != "" {
		t.Fatal(unmade)
	}
	sets := map[string]bool{}
	arms := syntax.PreferredAlternatives(p.Syntax())
	for _, s := range cases(newCover(c.branches, c.placesOf()), 32) {
		if err := c.add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range c.settled {
		set := ""
		for _, arm := range arms {
			if mayHide(arm, s.session) {
				set += arm.Source + " "
			}
		}
		sets[set] = true
	}
	together := c.groupAlternatives(arms)
	if len(arms) != 12 || len(together) > 12 || len(sets) <= 12 {
		t.Errorf("%d alternatives are compiled in %d packages; there are %d sets of them", len(arms), len(together), len(sets))
	}
	looked := 0
	for _, g := range together {
		looked += len(g.arms)
	}
	if looked != len(arms) {
		t.Errorf("%d of %d alternatives are looked at", looked, len(arms))
	}
}

// TestWhatIsNotThereHasNoValue: a map that is nil is not nil in an interface.
func TestWhatIsNotThereHasNoValue(t *testing.T) {
	t.Parallel()
	s := program.Session{
		CR:   map[string]any{"spec": map[string]any{"size": int64(1)}},
		Live: map[string]map[string]map[string]any{"web": {"deployment": {"kind": "Deployment"}}},
	}
	for path, want := range map[string]bool{
		"cr.spec.size":             true,
		"cr.spec.mode":             false,
		"cr.spec.size.more":        false,
		"live.web":                 false, // no object yet, and nothing is said about a component
		"live.web.deployment":      true,
		"live.web.deployment.kind": true,
		"live.web.service":         false,
		"live.web.service.kind":    false,
		"live.api.deployment":      false,
	} {
		if got := valueIn(s, strings.Split(path, ".")); (got != nil) != want {
			t.Errorf("%s: got %v, want a value: %t", path, got, want)
		}
	}
}

// TestADefaultThatFitsWhereItsReferenceDoesHidesNothing, so that no package is compiled for it.
func TestADefaultThatFitsWhereItsReferenceDoesHidesNothing(t *testing.T) {
	t.Parallel()
	live := func(value any) program.Session {
		return program.Session{Live: map[string]map[string]map[string]any{"web": {"deployment": {"at": value}}}}
	}
	reference := []syntax.Reference{{Path: []string{"live", "web", "deployment", "at"}}}
	for name, row := range map[string]struct {
		reason string
		value  any
		other  any
		want   bool
	}{
		"a number beside a number": {"the default fits", int64(3), int64(0), false},
		"a text beside a text":     {"the default fits", "x", "", false},
		"a text beside a number":   {"the text may go where a number is needed", "3", int64(1), true},
		"a list beside a text":     {"its type is another one", []any{}, "", true},
		"an expression":            {"it may fail whatever the default is", "x", nil, true},
		"nothing":                  {"the expression waits", nil, nil, false},
	} {
		if got := mayHide(syntax.PreferredAlternative{References: reference, Default: row.other}, live(row.value)); got != row.want {
			t.Errorf("%s: %s: got %t", name, row.reason, got)
		}
	}
}
