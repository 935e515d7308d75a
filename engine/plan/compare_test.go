package plan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
	"operetta.dev/test/machine"
)

func TestWithTheOldPackageOnlyTheDifferenceCounts(t *testing.T) {
	t.Parallel()
	next := strings.Replace(body, "web:1", "web:2", 1)
	for name, row := range map[string]struct {
		reason     string
		old, after string
		want       []string
	}{
		"the same package": {"what somebody has edited is undone by either", body, body, []string{"a unchanged"}},
		"another value": {
			"only what the new package does is shown", body, next,
			[]string{"a changed", "  updated web: Deployment a", `    spec.template.spec.containers[name=web].image: "web:1" → "web:2"`},
		},
		"a fault of both": {
			"a resource that was invalid does not become so",
			strings.Replace(body, "<=5", "<=3", 1), strings.Replace(next, "<=5", "<=3", 1), []string{"a unchanged"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, load(t, body), shop("a", map[string]any{"size": int64(4)}))
			on.edit(t, "ConfigMap", "a-base", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"mode": "slow"} })
			got := said(make1(t, plan.Options{Cluster: on, New: plan.Version{Program: load(t, row.after)}, Old: &plan.Version{Program: load(t, row.old)}}))
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAPlanOfTwoPackagesIsRefused(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	other := load(t, body+"\nversions: v1: {}\n")
	if _, err := plan.Make(t.Context(), plan.Options{Cluster: serve(t, p), New: plan.Version{Program: p}, Old: &plan.Version{Program: other}, Now: now}); err != nil {
		t.Errorf("two versions of one package: %v", err)
	}
	if _, err := plan.Make(t.Context(), plan.Options{Cluster: serve(t, p), New: plan.Version{Program: p}, Old: &plan.Version{Program: loadKind(t, "Market", body)}, Now: now}); err == nil {
		t.Error("the packages are for two kinds")
	}
}

// definition returns the CustomResourceDefinition of the packages of these tests.
func definition() *apiextensionsv1.CustomResourceDefinition {
	most := 5.0
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer", Maximum: &most, Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
	}}
	status := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Shop", ListKind: "ShopList", Plural: "shops", Singular: "shop"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": status},
				}},
			}},
		},
	}
}

func TestAGivenResourceIsPlannedAsIfItWereApplied(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		given  *unstructured.Unstructured
		want   []string
	}{
		"another value": {
			"what is there is updated", shop("a", map[string]any{"size": int64(3)}),
			[]string{"a changed", "  updated web: Deployment a", "    spec.replicas: 1 → 3"},
		},
		"the same": {"nothing changes", shop("a", map[string]any{"size": int64(1)}), []string{"a unchanged"}},
		"a new one": {
			"all of its objects are created", shop("b", map[string]any{}),
			[]string{"b created", "  created base: ConfigMap b-base", "  created web: Deployment b"},
		},
		"an invalid one": {
			"the API server would refuse it by its definition", shop("a", map[string]any{"size": int64(7)}),
			[]string{"a invalid", "  ! spec.size: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t, body)
			on := serve(t, p, shop("a", map[string]any{"size": int64(1)}), shop("z", map[string]any{}))
			got := said(make1(t, plan.Options{Cluster: on, New: plan.Version{Program: p, CRD: definition()}, Given: []*unstructured.Unstructured{row.given}}))
			if diff := cmp.Diff(row.want, shortened(got, row.want)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAGivenResourceThatThePlanDoesNotLookAtIsNotTakenForANewOne(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	on := serve(t, p, shop("a", map[string]any{"size": int64(1)}))
	elsewhere := shop("a", map[string]any{})
	elsewhere.SetNamespace("elsewhere")
	r := plan.NewRecorder(on, p.Name(), shopKind, now)
	r.Dump().Namespaces = []string{"default"}
	if _, err := plan.Make(t.Context(), plan.Options{Cluster: r, New: plan.Version{Program: p}, Now: now}); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := r.Dump().Write(&file); err != nil {
		t.Fatal(err)
	}
	part := read(t, file.Bytes())
	for name, row := range map[string]struct {
		reason     string
		cluster    plan.Snapshot
		namespaces []string
		given      *unstructured.Unstructured
		want       string
	}{
		"another namespace":                {"only one was asked for", on, []string{"default"}, elsewhere, "Shop elsewhere/a is in none of the namespaces that the plan looks at (default), so it is not known whether it exists"},
		"another namespace than of a dump": {"the dump has another one alone", part, nil, elsewhere, "whether Shop elsewhere/a exists is not known: the dump has the resources in the namespace default alone, and none in elsewhere"},
		"all namespaces":                   {"what is not there does not exist", on, nil, elsewhere, ""},
		"the namespace":                    {"it was read", on, []string{"default", "other"}, shop("a", map[string]any{}), ""},
		"the namespace of a dump":          {"it was read", part, []string{"default"}, shop("b", map[string]any{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := plan.Make(t.Context(), plan.Options{
				Cluster: row.cluster, New: plan.Version{Program: p}, Namespaces: row.namespaces, Given: []*unstructured.Unstructured{row.given}, Now: now,
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s: the error (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAFieldThatTheDefinitionDropsMakesNoResourceInvalid(t *testing.T) {
	t.Parallel()
	before := load(t, strings.Replace(body, "#Spec: size: int & <=5 | *1", "#Spec: {size: int & <=5 | *1, note?: string}", 1))
	on := serve(t, before, shop("a", map[string]any{"size": int64(1), "note": "x"}))
	got := said(make1(t, plan.Options{Cluster: on, New: plan.Version{Program: load(t, body), CRD: definition()}}))
	if diff := cmp.Diff([]string{"a unchanged"}, got); diff != "" {
		t.Errorf("an API server leaves it out when it returns the resource (-want +got):\n%s", diff)
	}
}

func TestAnEndedPlanSaysSo(t *testing.T) {
	machine.Serial(t)
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var all []*unstructured.Unstructured
	for i := range 20 {
		all = append(all, shop(fmt.Sprint("s", i), map[string]any{}))
	}
	p := load(t, body)
	on := serve(t, p, all...)
	_, err := plan.Make(ctx, plan.Options{Cluster: on, New: plan.Version{Program: p}, Now: now, Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
		if done > 4 {
			t.Errorf("%d resources are planned although nobody waits for it any more", done)
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// unserving is a cluster that does not serve a version of the kind Shop.
type unserving struct {
	served
	version string
}

func (u unserving) Resources(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if kind.Version == u.version {
		return nil, &cluster.KindNotServedError{Kind: kind}
	}
	return u.served.Resources(ctx, kind)
}

func TestAVersionOfTheKindThatIsNotServedYetIsPlanned(t *testing.T) {
	t.Parallel()
	old := load(t, body)
	next := load(t, strings.ReplaceAll(strings.Replace(body, "components: base", "versions: v2: {spec: #Spec, storage: true}\nversions: v1: {storage: false, convert: v2: {to: {given: #Spec, spec: given}, from: {given: #Spec, spec: given}}}\ncomponents: base", 1), "-base", "-ground"))
	if next.GroupVersionKind().Version != "v2" {
		t.Fatalf("the package is for %s", next.GroupVersionKind())
	}
	on := unserving{serve(t, old, shop("a", map[string]any{"size": int64(1)})), "v2"}
	got := said(make1(t, plan.Options{Cluster: on, New: plan.Version{Program: next}, Old: &plan.Version{Program: old}}))
	want := []string{
		"a changed", "  created base: ConfigMap a-ground",
		"  updated web: Deployment a", `    metadata.ownerReferences[name=a].apiVersion: "example.com/v1" → "example.com/v2"`, "  deleted base: ConfigMap a-base",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("its resources are those of the version that is served (-want +got):\n%s", diff)
	}
}
