package cluster_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/test/clustertest"
)

func TestKindsAreServedOrNot(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	gadget := s.Kind("Gadget")
	for kind, want := range map[schema.GroupVersionKind]cluster.Scope{
		{Version: "v1", Kind: "ConfigMap"}:                                       cluster.Namespaced,
		{Version: "v1", Kind: "Namespace"}:                                       cluster.ClusterScoped,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}: cluster.ClusterScoped,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:        cluster.Namespaced,
		widgetKind:                        cluster.Namespaced,
		{Version: "v1", Kind: "Nonsense"}: "",
		{Group: "apps", Version: "v9", Kind: "Deployment"}: "",
		gadget: "",
	} {
		if got, err := s.Scope(t.Context(), kind); got != want || (err == nil) != (want != "") || (err != nil && !cluster.IsKindNotServed(err)) {
			t.Errorf("%s has scope %q, error %v; want %q", kind, got, err, want)
		}
	}
	u := parse(t, s, `{apiVersion: `+gadget.GroupVersion().String()+`, kind: Gadget, metadata: {name: a}}`)
	if _, err := s.GetCached(t.Context(), cluster.RefOf(u)); !cluster.IsKindNotServed(err) {
		t.Errorf("reading one: %v", err)
	}
	if _, err := s.Apply(t.Context(), u); !cluster.IsKindNotServed(err) {
		t.Errorf("applying one: %v", err)
	}
	s.Serve(gadget)
	apply(t, s, u)
	s.Withdraw(gadget)
	if _, err := s.Apply(t.Context(), u); !cluster.IsKindNotServed(err) {
		t.Errorf("applying one of a kind that is gone: %v", err)
	}
	if _, err := s.GetLive(t.Context(), cluster.RefOf(u)); !cluster.IsKindNotServed(err) {
		t.Errorf("reading one of a kind that is gone: %v", err)
	}
}

// TestMemoryKnowsWhereObjectsLive compares with the cluster that it runs on: in memory
// it says nothing, on an API server all.
func TestMemoryKnowsWhereObjectsLive(t *testing.T) {
	t.Parallel()
	s, memory := clustertest.New(t), memory.New()
	known := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		want, err := s.Scope(t.Context(), kind)
		if err != nil || strings.HasSuffix(kind.Kind, "List") {
			continue // a part of a request, what is off, or no object
		}
		known++
		if got, err := memory.Scope(t.Context(), kind); got != want {
			t.Errorf("%s has scope %q, error %v; want %q", kind, got, err, want)
		}
	}
	if known < 60 {
		t.Errorf("only %d kinds were compared", known)
	}
}

// TestGenerationCountsChangesOfWhatIsWanted is what readiness rests on: a controller
// has seen the present generation, or it has not.
func TestGenerationCountsChangesOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	const pod = `template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}, selector: {matchLabels: {app: a}}`
	spec := func(value any, path ...string) func(u *unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, value, append([]string{"spec"}, path...)...)
		}
	}
	var (
		counted  = []int64{1, 1, 1, 2, 3}
		none     = []int64{0, 0, 0, 0, 0}
		seen     = map[string]any{"observedGeneration": int64(1)}
		replicas = spec(int64(2), "replicas")
		data     = func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "dg==", "data", "k")
		}
	)
	rows := map[string]struct {
		manifest string
		change   func(u *unstructured.Unstructured) error
		status   map[string]any
		want     []int64 // after creation, a label, a status, a change and the mark of a deletion
	}{
		"Deployment":  {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {` + pod + `}}`, replicas, seen, counted},
		"StatefulSet": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: a, ` + pod + `}}`, replicas, map[string]any{"replicas": int64(0), "observedGeneration": int64(1)}, counted},
		"Widget":      {widget, replicas, seen, counted},
		"ConfigMap":   {configMap, data, nil, none},
		"Secret":      {`{apiVersion: v1, kind: Secret, metadata: {name: a}}`, data, nil, none},
		"Service":     {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`, spec("a", "selector", "app"), map[string]any{"loadBalancer": map[string]any{}}, none},
		"Ingress": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`,
			spec("b", "defaultBackend", "service", "name"), map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}}, counted,
		},
		"PodDisruptionBudget": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1}}`, spec(int64(2), "minAvailable"),
			map[string]any{"currentHealthy": int64(1), "desiredHealthy": int64(1), "disruptionsAllowed": int64(1), "expectedPods": int64(1)}, counted,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.New(t)
			u := apply(t, s, parse(t, s, row.manifest))
			got := []int64{u.GetGeneration()}
			u.SetLabels(map[string]string{"l": "m"})
			u.SetFinalizers([]string{"example.com/held"})
			u = s.Put("somebody", u)
			got = append(got, u.GetGeneration())
			if row.status != nil {
				u.Object["status"] = row.status
				u = s.Put("somebody", u)
			}
			got = append(got, u.GetGeneration())
			if err := row.change(u); err != nil {
				t.Fatal(err)
			}
			u = s.Put("somebody", u)
			got = append(got, u.GetGeneration())
			remove(t, s, u)
			got = append(got, live(s, u).GetGeneration())
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSomeKindsHaveNoGeneration(t *testing.T) {
	t.Parallel()
	const pod = `spec: {restartPolicy: Never, containers: [{name: a, image: a}]}`
	for manifest, want := range map[string]int64{
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`: 1,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`:  1,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {` + pod + `}}}`:                                                                                                      1,
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "@daily", jobTemplate: {spec: {template: {` + pod + `}}}}}`:                                                       1,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}}}`:                                                                                        1,
		`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, addressType: IPv4, endpoints: []}`:                                                                                1,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`:                   1,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`:                                                                                                                                  0,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`:                                              0,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: []}`:                                                                                                       0,
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}, spec: {}}`:                                                                                                             0,
	} {
		s := clustertest.New(t)
		u := parse(t, s, manifest)
		t.Run(u.GetKind(), func(t *testing.T) {
			t.Parallel()
			if got := apply(t, s, u).GetGeneration(); got != want {
				t.Errorf("got generation %d, want %d", got, want)
			}
		})
	}
}

// TestWhatIsServedIsNotRemoved compares with the cluster that it runs on: on an API server, with all that it serves.
func TestWhatIsServedIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	for kind := range scheme.Scheme.AllKnownTypes() {
		removal, removed := cluster.APIRemovalOf(kind)
		if _, err := s.Scope(t.Context(), kind); err == nil && removed {
			t.Errorf("%s is served, and said to be removed: %+v", kind, removal)
		}
	}
}

func TestARemovalSaysSinceWhenAndWhatToWrite(t *testing.T) {
	t.Parallel()
	kind := schema.FromAPIVersionAndKind
	v := func(group, version string) schema.GroupVersion {
		return schema.GroupVersion{Group: group, Version: version}
	}
	for name, c := range map[string]struct {
		kind    schema.GroupVersionKind
		want    cluster.APIRemoval
		removed bool
		reason  string
	}{
		"a version that is served":           {kind: kind("apps/v1", "Deployment"), reason: "it is the current one"},
		"an older version that is served":    {kind: kind("autoscaling/v1", "HorizontalPodAutoscaler"), reason: "its end is not announced"},
		"a version that was removed":         {kind("apps/v1beta2", "Deployment"), cluster.APIRemoval{Since: "1.16", Instead: []schema.GroupVersion{v("apps", "v1")}}, true, "the type says so"},
		"a kind that moved to another group": {kind("extensions/v1beta1", "Ingress"), cluster.APIRemoval{Since: "1.22"}, true, "no version of this group has it"},
		"a version that never was":           {kind("batch/v9", "Job"), cluster.APIRemoval{Instead: []schema.GroupVersion{v("batch", "v1")}}, true, "another version has the kind"},
		"a custom kind":                      {kind: kind("apps.example.com/v1beta1", "Deployment"), reason: "only a cluster knows it"},
		"an unknown kind of a known group":   {kind: kind("apps/v1", "Deploymnt"), reason: "a newer Kubernetes may have it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, removed := cluster.APIRemovalOf(c.kind)
			if diff := cmp.Diff(c.want, got); diff != "" || removed != c.removed {
				t.Errorf("%s: removed %t, want %t (-want +got):\n%s", c.reason, removed, c.removed, diff)
			}
		})
	}
}

// TestTheMinorVersionOfKubernetesIsThatOfItsTypes keeps a constant current: what is announced for a later version is
// still served.
func TestTheMinorVersionOfKubernetesIsThatOfItsTypes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("k8s.io/api v0.%d.", cluster.KubernetesMinor); !strings.Contains(string(text), want) {
		t.Errorf("go.mod has no %q: change KubernetesMinor", want)
	}
}
