package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/patch"
)

// definitionsOfEngines are the beginnings of the digests of what each number of the definitions of the engine's own kinds
// stands for. Whoever changes one of them adds a number here and to all of them in config/crd: an older engine leaves
// those with a greater number alone.
var definitionsOfEngines = map[string]string{
	"1": "84846e5fe631",
	"2": "7517e780ea55",
}

func TestAChangedDefinitionHasAnotherNumber(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	numbers := map[string]bool{}
	for _, d := range slices.Concat(packages.CRDs(), []*apiextensionsv1.CustomResourceDefinition{patch.CRD()}) {
		numbers[d.Annotations[crd.DefinitionsAnnotation]] = true
		text, err := json.Marshal(d.Spec)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %s\n", d.Name, text)
	}
	latest := fmt.Sprint(len(definitionsOfEngines))
	if diff := cmp.Diff(map[string]bool{latest: true}, numbers); diff != "" {
		t.Errorf("the numbers of the definitions (-want +got):\n%s", diff)
	}
	if got := hex.EncodeToString(sum.Sum(nil)[:6]); got != definitionsOfEngines[latest] {
		t.Errorf("the definitions have the digest %s, and those of number %s have %s: a definition has changed, so it is number %d", got, latest, definitionsOfEngines[latest], len(definitionsOfEngines)+1)
	}
}

func TestOnlyTheDefinitionOfANewerEngineIsNewer(t *testing.T) {
	t.Parallel()
	numbered := func(number string) *apiextensionsv1.CustomResourceDefinition {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if number != "" {
			d.Annotations = map[string]string{crd.DefinitionsAnnotation: number}
		}
		return d
	}
	for _, tc := range []struct {
		reason, present, own string
		want                 bool
	}{
		{"a newer engine has installed it", "3", "2", true},
		{"numbers are no texts", "10", "9", true},
		{"it is the same", "2", "2", false},
		{"this engine is the newer one", "1", "2", false},
		{"it was installed before there were numbers", "", "1", false},
		{"somebody has written nonsense into it", "newest", "1", false},
		{"the definition of a package has no number", "7", "", false},
		{"nor has the present one", "", "", false},
	} {
		if got := crd.IsNewer(numbered(tc.present), numbered(tc.own)); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}
