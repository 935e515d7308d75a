package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/crd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// asking is a subsystems whose clock stands and whose API server is counted.
type asking struct {
	*subsystems
	requests int
	err      error
	at       time.Time
}

// newAsking returns one whose API server has the definition of example.com Things, with
// labels.
func newAsking(labels map[string]string) *asking {
	definition := thingDefinition()
	definition.SetLabels(labels)
	a := &asking{at: time.Unix(0, 0)}
	scheme := runtime.NewScheme()
	_ = metav1.AddMetaToScheme(scheme) // it never errors
	groups := []schema.GroupVersion{{Group: "example.com", Version: "v1"}, {Group: "aggregated.example.com", Version: "v1"}}
	mapper := meta.NewDefaultRESTMapper(groups)
	for _, group := range groups {
		mapper.Add(group.WithKind("Thing"), meta.RESTScopeNamespace)
	}
	mapper.Add(definitionKind, meta.RESTScopeRoot)
	direct := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(definition).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if a.requests++; a.err != nil {
				return a.err
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	a.subsystems = newSubsystems(direct, logr.Discard(), func(kind schema.GroupKind) bool { return kind.Group == "here.example.com" })
	a.now = func() time.Time { return a.at }
	return a
}

func thingDefinition() *metav1.PartialObjectMetadata {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	definition.SetName("things.example.com")
	return definition
}

// answer is what is said of a kind, and how many requests that took.
type answer struct {
	Is, Fails bool
	Requests  int
}

func (a *asking) about(t *testing.T, group, kind string) answer {
	t.Helper()
	before := a.requests
	is, err := a.has(t.Context(), schema.GroupKind{Group: group, Kind: kind})
	return answer{is, err != nil, a.requests - before}
}

func TestAKindIsThatOfAPackageIfItsDefinitionSaysSo(t *testing.T) {
	t.Parallel()
	ours := map[string]string{crd.PackageLabel: "thing"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "things.example.com", errors.New("no"))
	for name, row := range map[string]struct {
		reason      string
		labels      map[string]string
		err         error
		group, kind string
		first       answer
		again       answer
	}{
		"of this process":     {"nobody has to be asked", nil, nil, "here.example.com", "Thing", answer{true, false, 0}, answer{true, false, 0}},
		"Kubernetes' own":     {"the same", ours, nil, "apps", "Deployment", answer{}, answer{}},
		"of another process":  {"it is asked once", ours, nil, "example.com", "Thing", answer{true, false, 1}, answer{true, false, 0}},
		"a name without word": {"the label counts, whatever it says", map[string]string{crd.PackageLabel: ""}, nil, "example.com", "Thing", answer{true, false, 1}, answer{true, false, 0}},
		"somebody else's":     {"it is asked once", nil, nil, "example.com", "Thing", answer{false, false, 1}, answer{}},
		"aggregated":          {"it has no definition", ours, nil, "aggregated.example.com", "Thing", answer{false, false, 1}, answer{}},
		"not served":          {"there is no definition to ask for", ours, nil, "gone.example.com", "Thing", answer{}, answer{}},
		"not allowed to know": {"it counts as it reports", ours, forbidden, "example.com", "Thing", answer{false, false, 1}, answer{}},
		"no answer":           {"who guesses is wrong once", ours, errors.New("away"), "example.com", "Thing", answer{false, true, 1}, answer{false, true, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsking(row.labels)
			a.err = row.err
			for _, want := range []answer{row.first, row.again} {
				if diff := cmp.Diff(want, a.about(t, row.group, row.kind)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row.reason, diff)
				}
			}
		})
	}
}

func TestAKindMayBecomeThatOfAPackage(t *testing.T) {
	t.Parallel()
	a := newAsking(nil)
	a.about(t, "example.com", "Thing")
	definition := thingDefinition()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"`+crd.PackageLabel+`": "thing"}}}`))
	if err := a.direct.Patch(t.Context(), definition, patch); err != nil {
		t.Fatal(err)
	}
	if got := a.about(t, "example.com", "Thing"); got != (answer{}) {
		t.Errorf("at once: %+v, want no request", got)
	}
	a.at = a.at.Add(subsystemRecheck)
	if got := a.about(t, "example.com", "Thing"); got != (answer{true, false, 1}) {
		t.Errorf("after %s: %+v, want that it is one now", subsystemRecheck, got)
	}
	a.at = a.at.Add(24 * subsystemRecheck)
	if got := a.about(t, "example.com", "Thing"); got != (answer{true, false, 0}) {
		t.Errorf("later: %+v, want no request any more", got)
	}
}
