package packages

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/fault"
)

func TestDefinitionsAreValidAndThoseOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, definition := range CRDs() {
		shipped, err := os.ReadFile("../../config/crd/" + definition.Name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		embedded := map[string][]byte{"packages.operetta.dev": packageDefinition, "packagerevisions.operetta.dev": revisionDefinition, "overlays.operetta.dev": overlayDefinition}[definition.Name]
		if diff := cmp.Diff(string(shipped), string(embedded)); diff != "" {
			t.Errorf("%s (-config/crd +embedded):\n%s", definition.Name, diff)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
			t.Fatal(err)
		}
		if errs := validation.ValidateCustomResourceDefinition(t.Context(), internal); len(errs) > 0 {
			t.Errorf("%s: %v", definition.Name, errs)
		}
	}
}

func TestResourcesAreToldWhereAPackageIsWrongAndNotWhat(t *testing.T) {
	t.Parallel()
	at := fault.Fault{Position: fault.Position{File: "main.cue", Line: 3}, Path: "components.web", Message: `conflicting values "hunter2" and 1`}
	for name, row := range map[string]struct {
		reason  string
		problem problem
		want    string
	}{
		"a fault":      {"the message may quote a password", problem{stage: loading, reason: ReasonBroken, faults: fault.Faults{at}}, "main.cue:3: components.web; the status of Package p says why"},
		"two faults":   {"the first is enough to begin with", problem{stage: loading, reason: ReasonBroken, faults: fault.Faults{at, at}}, "main.cue:3: components.web and 1 more; the status of Package p says why"},
		"no place":     {"the reason is all that is known", problem{stage: reading, reason: ReasonSourceNotFound, message: "x"}, "SourceNotFound; the status of Package p says why"},
		"held back":    {"nothing is wrong", problem{stage: holding, reason: ReasonPaused}, ""},
		"only a place": {"there is no path", problem{stage: loading, reason: ReasonBroken, faults: fault.Faults{{Position: at.Position}}}, "main.cue:3; the status of Package p says why"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := row.problem.location("p"); got != row.want {
				t.Errorf("%s: it is %q, want %q", row.reason, got, row.want)
			}
		})
	}
}

func TestFaultsOfAStatusAreBounded(t *testing.T) {
	t.Parallel()
	var many fault.Faults
	for large := strings.Repeat("x", 1<<20); len(many) < 5000; {
		many = append(many, fault.Fault{Message: large, Hint: large})
	}
	list := faultList(many)
	size := 0
	for _, item := range list {
		for _, text := range item.(map[string]any) {
			size += len(text.(string))
		}
	}
	if len(list) != maxFaults || size > maxFaults*4*maxFaultText {
		t.Errorf("%d faults of %d bytes", len(list), size)
	}
}

func TestResourcesAreCountedByVersion(t *testing.T) {
	t.Parallel()
	named := func(name, digest string) Resource {
		return Resource{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, Digest: digest}
	}
	for name, row := range map[string]struct {
		reason    string
		resources []Resource
		want      []any
	}{
		"none":            {"an empty list is told from an unknown one", nil, []any{}},
		"two of a kind":   {"the most come first", []Resource{named("a", "x"), named("b", "y"), named("c", "y")}, []any{map[string]any{"digest": "y", "resources": int64(2)}, map[string]any{"digest": "x", "resources": int64(1)}}},
		"as many of each": {"the order must not flap", []Resource{named("a", "y"), named("b", "x"), named("c", "")}, []any{map[string]any{"digest": "", "resources": int64(1)}, map[string]any{"digest": "x", "resources": int64(1)}, map[string]any{"digest": "y", "resources": int64(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(row.want, revisionCounts(row.resources)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
	var forged []Resource
	for i := range 10_000 {
		forged = append(forged, named("a", strings.Repeat("x", i%3000)))
	}
	if got := revisionCounts(forged); len(got) != maxDigests {
		t.Errorf("%d digests are listed: whoever may write a status could make this one too large", len(got))
	}
}

func TestStepIsDueAtTheEarliestOfItsReasons(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		result result
		want   time.Duration
	}{
		"nothing":              {"an event tells of the next change", result{}, 0},
		"a kind that is taken": {"no event tells that it is free", result{problem: &problem{again: claimAgain}}, claimAgain},
		"both":                 {"the deletion is sooner", result{problem: &problem{again: claimAgain}, waitAgain: deletionAgain}, deletionAgain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := row.result.again(&state{}, time.Time{}); got != row.want {
				t.Errorf("%s: it is %s, want %s", row.reason, got, row.want)
			}
		})
	}
}
