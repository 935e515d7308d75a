package dryrun_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/status"
	"operetta.dev/engine/verify"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// load returns a package of a kind, with a body.
func load(t *testing.T, kind, body string) *program.Program {
	t.Helper()
	name := strings.ToLower(kind)
	text := fmt.Sprintf(`package %s

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  %q
versions: v1: spec: {size: int | *1, ...}
cr: spec: versions.v1.spec
live: _
`, name, kind)
	snapshot, err := source.Loader{}.Module(name, "", name, fstest.MapFS{
		name + "/a.cue": &fstest.MapFile{Data: []byte(text)},
		name + "/b.cue": &fstest.MapFile{Data: []byte("package " + name + "\n" + body)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := inline.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refOf is a resource of a kind, called main.
func refOf(kind string) cluster.Ref {
	return cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, Namespace: "default", Name: "main"}
}

// put writes a resource with a spec.
func put(t *testing.T, w *dryrun.World, kind string, spec map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	ref := refOf(kind)
	u.SetGroupVersionKind(ref.GroupVersionKind)
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	if _, err := w.Put(u); err != nil {
		t.Fatal(err)
	}
}

// run runs the world to rest, and returns what each step wrote, and any further look
// at a step.
func run(t *testing.T, w *dryrun.World, look func(dryrun.Step)) []string {
	t.Helper()
	var out []string
	if err := w.Run(t.Context(), func(s dryrun.Step) {
		for _, c := range s.Changes {
			out = append(out, string(c.Operation)+" "+c.Ref.Kind+" "+c.Ref.Name)
		}
		if s.Err != nil {
			t.Errorf("step %d: %v", s.Number, s.Err)
		}
		look(s)
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func nothing(dryrun.Step) {}

const (
	parent = `
components: child: objects: o: {apiVersion: "example.com/v1", kind: "Child", metadata: name: "main", spec: size: cr.spec.size}
components: after: {dependsOn: child: {}, objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "after", data: size: "\(cr.spec.size)"}}
`
	child = `
components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "base"}
components: web: {dependsOn: base: {}, objects: o: {
	apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web"
	spec: {replicas: cr.spec.size, selector: matchLabels: app: "web", template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "web:1"}]}}
}}
`
)

func TestASubsystemIsReadyWhenItsOperatorSaysSo(t *testing.T) {
	t.Parallel()
	// The order in which the operators act must not matter.
	for name, first := range map[string]bool{"parent first": true, "child first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			programs := []*program.Program{load(t, "Child", child), load(t, "Parent", parent)}
			if first {
				programs[0], programs[1] = programs[1], programs[0]
			}
			w := dryrun.New(types.NamespacedName{}, programs...)
			put(t, w, "Parent", map[string]any{})
			childFirst := func(s dryrun.Step) {
				for _, c := range s.Changes {
					if ready, why := w.Ready(refOf("Child")); c.Ref.Name == "after" && c.Operation != "delete" && !ready {
						t.Errorf("what comes after the child is written while that is not ready: %s", why)
					}
				}
			}
			got := run(t, w, childFirst)
			if diff := cmp.Diff([]string{"create Child main", "create ConfigMap base", "create Deployment web", "create ConfigMap after"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if ready, why := w.Ready(refOf("Parent")); !ready {
				t.Errorf("the parent is not ready: %s", why)
			}

			put(t, w, "Parent", map[string]any{"size": int64(2)})
			got = run(t, w, func(s dryrun.Step) {
				for _, c := range s.Changes {
					u := w.Get(refOf("Child"))
					observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
					if c.Ref.Name == "after" && observed != u.GetGeneration() {
						t.Error("what comes after the child is updated before that has its new generation rolled out")
					}
				}
			})
			if diff := cmp.Diff([]string{"update Child main", "update Deployment web", "update ConfigMap after"}, got); diff != "" {
				t.Errorf("an update goes down in order (-want +got):\n%s", diff)
			}

			if err := w.Delete(refOf("Parent")); err != nil {
				t.Fatal(err)
			}
			got = run(t, w, nothing)
			want := []string{"delete ConfigMap after", "update Child main", "delete Deployment web", "delete ConfigMap base", "delete Child main", "delete Parent main"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("G1: deletion goes through both, backwards (-want +got):\n%s", diff)
			}
			if left := w.Cluster.Refs(); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestEveryKindGetsHealthyByItself(t *testing.T) {
	t.Parallel()
	const pods = `template: {metadata: labels: app: "x", spec: containers: [{name: "x", image: "x:1"}]}`
	const selected = "spec: {selector: matchLabels: app: \"x\", " + pods + "}"
	const runs = `template: spec: {restartPolicy: "Never", containers: [{name: "x", image: "x:1"}]}`
	kinds := map[string][2]string{
		"Deployment": {"apps/v1", selected}, "StatefulSet": {"apps/v1", selected}, "DaemonSet": {"apps/v1", selected}, "ReplicaSet": {"apps/v1", selected},
		"ReplicationController": {"v1", "spec: {selector: app: \"x\", " + pods + "}"},
		"Job":                   {"batch/v1", "spec: " + runs},
		"CronJob":               {"batch/v1", `spec: {schedule: "@daily", jobTemplate: spec: ` + runs + "}"},
		"Pod":                   {"v1", `spec: containers: [{name: "x", image: "x:1"}]`},
		"PersistentVolumeClaim": {"v1", `spec: {accessModes: ["ReadWriteOnce"], resources: requests: storage: "1Gi"}`},
		"Service":               {"v1", `spec: {type: "LoadBalancer", ports: [{port: 80}]}`},
		"ConfigMap":             {"v1", ""}, "Secret": {"v1", ""}, "Namespace": {"v1", ""}, "PersistentVolume": {"v1", ""},
		"Ingress":                 {"networking.k8s.io/v1", `spec: defaultBackend: service: {name: "x", port: number: 80}`},
		"PodDisruptionBudget":     {"policy/v1", ""},
		"HorizontalPodAutoscaler": {"autoscaling/v2", `spec: {maxReplicas: 2, scaleTargetRef: {kind: "Deployment", name: "x"}}`},
		"Certificate":             {"cert-manager.io/v1", ""}, "ClusterIssuer": {"cert-manager.io/v1", ""},
		"APIService": {"apiregistration.k8s.io/v1", ""},
	}
	var body strings.Builder
	body.WriteString(`reach: {"CustomResourceDefinition.apiextensions.k8s.io": {}, Namespace: {}, PersistentVolume: {}, "ClusterIssuer.cert-manager.io": {}, "APIService.apiregistration.k8s.io": {}}
components: crd: objects: o: {
	apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: name: "xs.example.net"
	spec: {group: "example.net", scope: "Namespaced", names: {kind: "X", plural: "xs"}, versions: [{name: "v1", served: true, storage: true, schema: openAPIV3Schema: type: "object"}]}
}
`)
	for kind, is := range kinds {
		fmt.Fprintf(&body, "components: c%s: objects: o: {apiVersion: %q, kind: %q, metadata: {name: \"x\"}, %s}\n", strings.ToLower(kind), is[0], kind, is[1])
	}
	w := dryrun.New(types.NamespacedName{}, load(t, "Parent", body.String()))
	for kind, scope := range map[string]string{"Certificate": "Namespaced", "ClusterIssuer": "Cluster"} {
		if _, err := w.Put(definition("cert-manager.io", kind, scope)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, w, "Parent", map[string]any{})
	run(t, w, nothing)
	if ready, why := w.Ready(refOf("Parent")); !ready {
		t.Error(why)
	}
	for _, u := range w.Cluster.Objects() {
		if j := verify.Object(u, "ready"); j.Health != verify.Ready {
			t.Errorf("%s is %s: %s", u.GetKind(), j.Health, j.Message)
		}
	}
}

// definition returns the CustomResourceDefinition of a kind.
func definition(group, kind, scope string) *unstructured.Unstructured {
	plural := strings.ToLower(kind) + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": scope, "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func TestTheAuthorIsAskedWhereObjectsOfAnUnknownKindLive(t *testing.T) {
	t.Parallel()
	p := load(t, "Parent", `components: issuer: objects: o: {apiVersion: "cert-manager.io/v1", kind: "ClusterIssuer", metadata: name: "x"}`)
	for scope, want := range map[string]string{
		"":           "give its CustomResourceDefinition with -f",
		"Cluster":    "is cluster-scoped",
		"Namespaced": "",
	} {
		w := dryrun.New(types.NamespacedName{}, p)
		if scope != "" {
			if _, err := w.Put(definition("cert-manager.io", "ClusterIssuer", scope)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, w, "Parent", map[string]any{})
		run(t, w, nothing)
		ready, why := w.Ready(refOf("Parent"))
		if ready != (want == "") || !strings.Contains(why, want) {
			t.Errorf("scope %q: ready is %t, because %s; want %q", scope, ready, why, want)
		}
	}
}

func TestWhatCannotBecomeReadyComesToRestAndSaysWhy(t *testing.T) {
	t.Parallel()
	rows := map[string]struct{ body, want string }{
		"a predicate that never holds": {
			`components: a: {objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}, verify: big: cr.spec.size > 5}`,
			"NotReady: a: verify.big: cr.spec.size > 5",
		},
		"a timeout": {
			`components: a: {timeout: "10m", objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}, verify: big: cr.spec.size > 5}`,
			"TimedOut: a: not ready within 10m0s: verify.big",
		},
		"an input that is not there": {
			`inputs: x: {apiVersion: "v1", kind: "Secret", name: "x"}
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: k: inputs.x.object.data.k}`,
			"WaitingForValue: a: waiting for",
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dryrun.New(types.NamespacedName{}, load(t, "Parent", row.body))
			put(t, w, "Parent", map[string]any{})
			run(t, w, nothing)
			if ready, why := w.Ready(refOf("Parent")); ready || !strings.HasPrefix(why, row.want) {
				t.Errorf("ready %v, %q, want %q", ready, why, row.want)
			}
		})
	}
}

func TestAPatchIsTriedOutAsEverythingElse(t *testing.T) {
	t.Parallel()
	w := dryrun.New(types.NamespacedName{}, load(t, "Child", child))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "Child", "name": "main"},
		"patches": []any{map[string]any{"address": "base.o", "strategicMerge": map[string]any{"data": map[string]any{"mode": "safe"}}}},
	}}}
	u.SetGroupVersionKind(patch.Kind)
	u.SetNamespace("default")
	u.SetName("hotfix")
	if _, err := w.Put(u); err != nil {
		t.Fatal(err)
	}
	put(t, w, "Child", map[string]any{})
	run(t, w, nothing)
	base := w.Get(cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Name: "base"})
	if mode, _, _ := unstructured.NestedString(base.Object, "data", "mode"); mode != "safe" {
		t.Errorf("the patched object is %v", base.Object["data"])
	}
	s := w.Get(cluster.Ref{GroupVersionKind: patch.Kind, Namespace: "default", Name: "hotfix"}).Object["status"].(map[string]any)
	if !status.Equal(s, map[string]any{"observedGeneration": s["observedGeneration"], "conditions": s["conditions"], "applied": []any{map[string]any{"address": "base.o", "object": "ConfigMap default/base"}}}) {
		t.Errorf("the patch says %v", s)
	}
	if ready, why := w.Ready(refOf("Child")); !ready {
		t.Error(why)
	}
}

func TestWhatWasReadFromAClusterIsTakenAsItWasThere(t *testing.T) {
	t.Parallel()
	const body = `components: base: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "base", data: {mode: "fast", size: "\(cr.spec.size)"}}`
	there := dryrun.New(types.NamespacedName{}, load(t, "Child", body))
	put(t, there, "Child", map[string]any{})
	run(t, there, nothing)
	for name, row := range map[string]struct {
		reason, body string
		edit         func(*unstructured.Unstructured)
		want         []string
	}{
		"the same package":    {"nothing is to be done", body, func(*unstructured.Unstructured) {}, nil},
		"without who owns it": {"it is applied, and is the same", body, func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }, nil},
		"another package": {
			"it is updated, and not somebody else's", strings.Replace(strings.ReplaceAll(body, "fast", "safe"), `, size: "\(cr.spec.size)"`, "", 1), func(*unstructured.Unstructured) {},
			[]string{`data.mode: "fast" -> "safe"`, `data.size: "1" -> (none)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dryrun.New(types.NamespacedName{}, load(t, "Child", row.body))
			for _, u := range there.Cluster.Objects() {
				u.SetUID("live-" + u.GetUID())
				owners := u.GetOwnerReferences()
				for i := range owners {
					owners[i].UID = "live-" + owners[i].UID
				}
				u.SetOwnerReferences(owners)
				if marks := u.GetAnnotations(); marks[ownership.OwnerUIDAnnotation] != "" {
					marks[ownership.OwnerUIDAnnotation] = "live-" + marks[ownership.OwnerUIDAnnotation]
					u.SetAnnotations(marks)
				}
				row.edit(u)
				if _, err := w.Put(u); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			run(t, w, func(s dryrun.Step) {
				for _, c := range s.Changes {
					for _, f := range (&diff.Mask{}).Fields(c.Before, c.Object) {
						got = append(got, f.String())
					}
				}
			})
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestWhatAPersonDoesWakesWhoItConcerns(t *testing.T) {
	t.Parallel()
	w := dryrun.New(types.NamespacedName{}, load(t, "Parent", `
inputs: token: {apiVersion: "v1", kind: "ConfigMap", name: "token"}
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: k: inputs.token.object.data.k}
`))
	put(t, w, "Parent", map[string]any{})
	run(t, w, nothing)
	configMap := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Name: "token"}
	for _, step := range []struct {
		reason string
		act    func() error
		want   []string
	}{
		{"the input appears", func() error {
			u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": "v"}}}
			u.SetGroupVersionKind(configMap.GroupVersionKind)
			u.SetNamespace(configMap.Namespace)
			u.SetName(configMap.Name)
			_, err := w.Put(u)
			return err
		}, []string{"create ConfigMap a"}},
		{"what it made is deleted", func() error {
			ref := configMap
			ref.Name = "a"
			return w.Delete(ref)
		}, []string{"create ConfigMap a"}},
		{"nothing happens", func() error { return nil }, nil},
		{"the resource goes", func() error { return w.Delete(refOf("Parent")) }, nil},
	} {
		if err := step.act(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, run(t, w, nothing)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}

// A resource does not wait for the reconciles of the others.
func TestManyResourcesHaveTheTimeThatOneHas(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	own := strings.NewReplacer(`name: "main"`, "name: cr.metadata.name", `name: "base"`, "name: cr.metadata.name", `name: "web"`, "name: cr.metadata.name",
		`name: "after"`, `name: cr.metadata.name + "-after"`)
	const last = `
components: last: {dependsOn: web: {}, objects: o: {
	apiVersion: "apps/v1", kind: "Deployment", metadata: name: cr.metadata.name + "-last"
	spec: {selector: matchLabels: app: "web", template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "web:1"}]}}
}}
`
	w := dryrun.New(types.NamespacedName{}, load(t, "Child", own.Replace(child)+last), load(t, "Parent", own.Replace(parent)+`components: child: timeout: "15s"`))
	ref := refOf("Parent")
	for i := range 12 {
		ref.Name = fmt.Sprint("r", i)
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		u.SetGroupVersionKind(ref.GroupVersionKind)
		u.SetNamespace(ref.Namespace)
		u.SetName(ref.Name)
		if _, err := w.Put(u); err != nil {
			t.Fatal(err)
		}
	}
	late := 0
	run(t, w, func(s dryrun.Step) {
		if strings.Contains(fmt.Sprint(s.Status), "not ready within") {
			late++
		}
	})
	if ready, why := w.Ready(ref); late > 0 || !ready {
		t.Errorf("%d steps report a timeout, and in the end the last one is ready: %t, %s", late, ready, why)
	}
}
