package patch_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/status"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func TestStatusSaysWhereAPatchIsApplied(t *testing.T) {
	p := newPatch(t, "p", 0, `[{address: web.deployment, strategicMerge: {spec: {replicas: 1}}}, {address: web.deploy, strategicMerge: {}}]`)
	_, reports := apply(t, p)
	got := patch.Status(nil, reports[0], now)
	message := "component web has no object deploy; there are deployment, secret"
	want := map[string]any{
		"observedGeneration": int64(1),
		"conditions": []any{map[string]any{
			"type": "Applied", "status": "False", "reason": "NoSuchObject", "observedGeneration": int64(1),
			"lastTransitionTime": "2026-01-02T03:04:05Z", "message": "web.deploy: " + message + "; otherwise applied to 1 object",
		}},
		"applied":   []any{map[string]any{"address": "web.deployment", "object": "Deployment default/shop"}},
		"unmatched": []any{map[string]any{"address": "web.deploy", "reason": "NoSuchObject", "message": message}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := patch.Status(got, reports[0], now.Add(time.Hour)); !status.Equal(got, again) {
		t.Errorf("without news it is another status:\n%s", cmp.Diff(got, again))
	}
	if got := patch.ObservedGeneration(got); got != 1 {
		t.Errorf("it is about generation %d", got)
	}
}

func TestTheConditionHasTheReasonToLookAtFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		misses []patch.UnmatchedChange
		want   string
	}{
		"none":               {"all is well", nil, "Applied"},
		"only pending":       {"it passes by itself", []patch.UnmatchedChange{{Address: "a.b", Reason: patch.Pending}}, "Pending"},
		"pending, and wrong": {"what is wrong does not pass", []patch.UnmatchedChange{{Address: "a.b", Reason: patch.Pending}, {Address: "c.d", Reason: patch.Conflict}}, "Conflict"},
		"two wrong":          {"the first is as good as any, and always the same", []patch.UnmatchedChange{{Address: "a.b", Reason: patch.Invalid}, {Address: "c.d", Reason: patch.Conflict}}, "Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := patch.Status(nil, patch.Report{Unmatched: tc.misses}, now)
			c := s["conditions"].([]any)[0].(map[string]any)
			if c["reason"] != tc.want {
				t.Errorf("%s: reason is %v, want %s", tc.reason, c["reason"], tc.want)
			}
		})
	}
}

func TestAPatchOfManyObjectsSaysWhatAStatusCanHold(t *testing.T) {
	r := patch.Report{Applied: []patch.ChangedObject{{}}}
	for i := range 1000 {
		r.Unmatched = append(r.Unmatched, patch.UnmatchedChange{Address: fmt.Sprintf("web.o%d", i), Reason: patch.Rejected, Message: strings.Repeat("m", 10000)})
	}
	s := patch.Status(nil, r, now)
	message, _ := s["conditions"].([]any)[0].(map[string]any)["message"].(string)
	if len(message) > 2048 || !strings.HasSuffix(message, "; and 990 more; otherwise applied to 1 object") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
	for _, m := range s["unmatched"].([]any) {
		if text, _ := m.(map[string]any)["message"].(string); len(text) > 512 {
			t.Fatalf("it says %d bytes about one object", len(text))
		}
	}
}

func TestTheDefinitionIsTheOneInConfig(t *testing.T) {
	const name = "patches.operetta.dev.yaml"
	shipped, err := os.ReadFile("../../config/crd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(built), string(shipped)); diff != "" {
		t.Errorf("config/crd/%s is another one (-built in +shipped):\n%s", name, diff)
	}
}

func TestTheDefinitionIsValid(t *testing.T) {
	definition := patch.CRD()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{patch.Kind.Version}
	for _, e := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
		t.Error(e)
	}
	if strings.Join(definition.Spec.Names.ShortNames, ",") != "opatch" || definition.Spec.Names.Kind != patch.Kind.Kind {
		t.Errorf("names are %+v", definition.Spec.Names)
	}
}
