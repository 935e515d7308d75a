package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

const adoptingBody = `
#Spec: text: string

components: web: {
	objects: settings: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "settings"
		data: text: cr.spec.text
	}
	policy: settings: adopt: ADOPT
}
`

func TestE6AdoptionTakesAnObjectOfNobody(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "taking", replaceAdopt("true"))
	s.StartOperator(p.Dir)
	s.applyAs("platform-team", s.ConfigMap("settings", map[string]any{"text": "theirs", "more": "kept"}))
	before := s.Get("ConfigMap", "settings")
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "mine"}))
	s.ExpectResourceReady(cr)
	after := s.ExpectData("settings", "text", "mine")
	if refs := after.GetOwnerReferences(); len(refs) != 1 || refs[0].Name != "shop" || after.GetUID() != before.GetUID() {
		t.Errorf("it was not taken: owners %v, a new object: %t", refs, after.GetUID() != before.GetUID())
	}
	if got := harness.Field(after, "data", "more"); got != "kept" {
		t.Errorf("a field of somebody else's is %v", got)
	}
	s.Delete(cr)
	s.ExpectGone(cr)
	s.ExpectGone(after)
}

func TestE6AdoptionTakesAnObjectOfAnotherResourceAndOnlyWithTheWord(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]string{"with": "true", "without": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			owner := s.Create(s.ConfigMap("owner", nil))
			theirs := s.ConfigMap("settings", map[string]any{"text": "theirs"})
			theirs.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": string(owner.GetUID()), "controller": true,
			}}
			before := s.Create(theirs)
			p := newTestPackage(t, "taking"+name, replaceAdopt(word))
			s.StartOperator(p.Dir)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "mine"}))
			if word == "true" {
				s.ExpectResourceReady(cr)
				after := s.ExpectData("settings", "text", "mine")
				if controller := controllerOf(after); controller != "shop" {
					t.Errorf("its controller is %s", controller)
				}
				return
			}
			t.Log(s.ExpectNotReady(cr, "OwnedByAnother", "web: ", "ConfigMap "+s.Namespace+"/settings", "ConfigMap owner"))
			s.Delete(cr)
			s.ExpectGone(cr)
			if after := s.Get("ConfigMap", "settings"); after.GetResourceVersion() != before.GetResourceVersion() {
				t.Errorf("it was changed: %s", harness.Encode(t, after.Object))
			}
		})
	}
}

func controllerOf(u *unstructured.Unstructured) string {
	for _, ref := range u.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return ref.Name
		}
	}
	return "nobody"
}

func replaceAdopt(word string) string { return strings.Replace(adoptingBody, "ADOPT", word, 1) }
