package object_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/object"
)

func TestNamespacesAreNamesThatAnAPIServerKnows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		names  []string
		want   object.Namespaces
		wrong  string
	}{
		"None":      {"no name restricts nothing", nil, nil, ""},
		"Sorted":    {"the order in which they are named says nothing", []string{"b", "a"}, object.Namespaces{"a", "b"}, ""},
		"Duplicate": {"whoever names one twice may have meant another one", []string{"a", "b", "a"}, nil, "the namespace a occurs twice"},
		"Empty":     {"an empty variable must not stand for all namespaces", []string{"a", ""}, nil, "the name of a namespace is empty"},
		"Invalid":   {"no namespace has such a name, so nothing would be served there", []string{"Team_A"}, nil, `"Team_A" is not the name of a namespace`},
		"Spaces":    {"a space behind a comma is no part of a name", []string{"a", " b"}, nil, `" b" is not the name of a namespace`},
		"Long":      {"a name has a length", []string{strings.Repeat("a", 64)}, nil, "is not the name of a namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := object.ParseNamespaces(tc.names)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.wrong)
			}
		})
	}
}

func TestNoNamespacesAreAll(t *testing.T) {
	t.Parallel()
	all, two := object.Namespaces(nil), object.Namespaces{"a", "b"}
	if !all.All() || !all.Has("x") || two.All() || two.Has("x") || !two.Has("b") {
		t.Error("what has a namespace is wrong")
	}
	if diff := cmp.Diff([][]string{{""}, {"a", "b"}}, [][]string{all.Lists(), two.Lists()}); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	if all.Only() != "" || two.Only() != "" || (object.Namespaces{"a"}).Only() != "a" || two.String() != "a,b" {
		t.Error("the names are wrong")
	}
}
