package crd_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/test/shape"
)

// TestWhatTheAuthorLeavesOpenHasALimitAtTheServer tries what CUE accepts in any number.
func TestWhatTheAuthorLeavesOpenHasALimitAtTheServer(t *testing.T) {
	t.Parallel()
	many := func(n int) map[string]any {
		out := map[string]any{}
		for i := range n {
			out[strings.Repeat("x", i+1)] = "v"
		}
		return out
	}
	cases := map[string]struct {
		reason, schema string
		value          any
		want           bool
	}{
		"FewKeys":     {"what a person writes is allowed", "f?: [string]: string", many(256), true},
		"ManyKeys":    {"a map without a limit has 256 keys at most", "f?: [string]: string", many(257), false},
		"MoreAllowed": {"what the author allows is allowed", "f?: {[string]: string} & struct.MaxFields(300)", many(300), true},
		"Text":        {"a text has 32,768 characters at most", "f?: string", strings.Repeat("x", 32_768), true},
		"LongText":    {"and no more", "f?: string", strings.Repeat("x", 32_769), false},
		"Nested":      {"a map within a map has fewer", "f?: [string]: [string]: string", map[string]any{"a": many(33)}, false},
		"Default": {
			"a default of the author's is allowed whatever its size, and so is everything up to that",
			"f: [...string] | *[for i in list.Range(0, 300, 1) {\"x\"}]", nil, true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := prelude + "#Spec: {\n" + c.schema + "\n}\n"
			generated, err := crd.Generate(definitionOf(cuecontext.New().CompileString(source)))
			if err != nil {
				t.Fatal(err)
			}
			if err := conform.Check(generated); err != nil {
				t.Fatal(err)
			}
			server, err := conform.NewServer(generated, "v1")
			if err != nil {
				t.Fatal(err)
			}
			spec := map[string]any{}
			if c.value != nil {
				spec["f"] = c.value
			}
			_, err = server.Admit(map[string]any{"apiVersion": "example.com/v1", "kind": "WebShop", "spec": spec}, nil)
			if (err == nil) != c.want {
				t.Errorf("%s: %.300v", c.reason, err)
			}
		})
	}
}

// TestALimitByDefaultMakesNoRuleDearer holds what the API server says of the rules of
// schemas against what it says without the limits that their authors left out.
func TestALimitByDefaultMakesNoRuleDearer(t *testing.T) {
	t.Parallel()
	sources := []string{
		`{tags?: [...string] @crd(rule="self.all(x, x.matches('^[a-z]+$'))")}`,
		`{env?: {[string]: string} @crd(rule="self.all(k, k.size() < 10 && self[k].size() < 10)")}`,
		`{parts?: [...{names?: [...string], @crd(rule="!has(self.names) || self.names.all(x, x != 'a')")}]}`,
		`{@crd(rule="self.a.all(x, self.b.exists(y, y == x))"), a: [...string], b: [...string]}`,
		`{a?: [string]: [string]: string @crd(immutable), b?: int | string @crd(immutable)}`,
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		data := make([]byte, 60)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		sources = append(sources, shape.Defaults(data))
	}
	cheaper := 0
	for _, source := range sources {
		generated, err := crd.Generate(definitionOf(cuecontext.New().CompileString(prelude + "#Spec: " + source + "\n")))
		if err != nil {
			t.Fatal(err)
		}
		bare := generated.DeepCopy()
		withoutLimits(bare.Spec.Versions[0].Schema.OpenAPIV3Schema)
		before, after := fieldsRefused(t, bare), fieldsRefused(t, generated)
		for field, why := range after {
			if _, known := before[field]; !known {
				t.Errorf("%s: %s is refused because of a limit: %s", source, field, why)
			}
		}
		if len(after) < len(before) {
			cheaper++
		}
	}
	if cheaper < 2 {
		t.Errorf("no rule has become possible by a limit")
	}
}

func fieldsRefused(t *testing.T, c *apiextensionsv1.CustomResourceDefinition) map[string]string {
	t.Helper()
	errs, err := conform.Errors(c)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range errs {
		out[e.Field] = e.Detail
	}
	return out
}

// withoutLimits removes all limits: none is by the author here.
func withoutLimits(s *apiextensionsv1.JSONSchemaProps) {
	s.MaxItems, s.MaxProperties, s.MaxLength = nil, nil, nil
	if s.Items != nil {
		withoutLimits(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		withoutLimits(s.AdditionalProperties.Schema)
	}
	for name, p := range s.Properties {
		if name == "status" {
			continue
		}
		withoutLimits(&p)
		s.Properties[name] = p
	}
}

func TestLimitsOfAField(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	cases := map[string]crd.Limits{
		"int":                                   {Low: -inf, High: inf},
		"int & >=0":                             {Low: 0, High: inf},
		"int & >=1 & <=9 | *3":                  {Low: 1, High: 9},
		"1 | 5 | *3":                            {Low: 1, High: 5, Finite: true},
		"int | *3":                              {Low: -inf, High: inf},
		"1 | >=100":                             {Low: 1, High: inf},
		"uint8":                                 {Low: 0, High: 255},
		"bool":                                  {High: 1, Finite: true},
		"string":                                {High: 32768},
		`"a" | *"abc"`:                          {High: 3, Finite: true},
		`=~"^[0-9]{1,3}$"`:                      {High: 3},
		`strings.MaxRunes(7)`:                   {High: 7},
		"[...int]":                              {High: 256},
		"[...int] & list.MaxItems(3)":           {High: 3},
		"{[string]: int}":                       {High: 256},
		"{[string]: int} & struct.MaxFields(2)": {High: 2},
		"{a: int, b?: string}":                  {High: 2},
		"int | string":                          {Low: -inf, High: inf},
		"_":                                     {Low: -inf, High: inf},
	}
	for source, want := range cases {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			v := cuecontext.New().CompileString(prelude + "#X: " + source + "\n").LookupPath(cue.ParsePath("#X"))
			if got := crd.LimitsOf(v, 0); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
