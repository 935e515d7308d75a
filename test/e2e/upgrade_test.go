package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/cluster"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordings are what older engines have left in a cluster: the custom resource first, and then its objects. They
// were recorded by running the engine of the commit in the name on a control plane, until the sample was Ready.
const recordings = "test/e2e/testdata/upgrade/*.yaml"

// uidPrefix is how much of a UID an inventory has.
const uidPrefix = 8

// recorded returns the objects of a recording, for a namespace.
func recorded(t *testing.T, file, namespace string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	moved := strings.NewReplacer("namespace: default", "namespace: "+namespace, " default/", " "+namespace+"/").Replace(string(text))
	if err := yaml.Unmarshal([]byte(moved), &list); err != nil {
		t.Fatal(err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out
}

// renamed replaces the UIDs of a recording, which an API server chooses.
func renamed(t *testing.T, u *unstructured.Unstructured, uids map[string]string) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	for was, is := range uids {
		// An inventory has the beginnings of UIDs.
		text = []byte(strings.ReplaceAll(strings.ReplaceAll(string(text), was, is), was[:uidPrefix], is[:uidPrefix]))
	}
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// ownedBy returns the part of an object that a field manager owns, which is what it has applied, and the names of
// all managers that own something.
func ownedBy(t *testing.T, u *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{Object: map[string]any{}}
	for _, entry := range u.GetManagedFields() {
		var fields map[string]any
		if entry.Manager != manager || entry.Subresource != "" {
			continue
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		part, _ := owned(t, u.Object, fields).(map[string]any)
		out.Object = part
	}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetName(u.GetName())
	out.SetNamespace(u.GetNamespace())
	return out
}

// owned returns the part of a value that a set of fields names.
func owned(t *testing.T, value any, fields map[string]any) any {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, below := range fields {
			if key, is := strings.CutPrefix(name, "f:"); is && v[key] != nil {
				out[key] = owned(t, v[key], below.(map[string]any))
			}
		}
		if len(out) == 0 {
			return v
		}
		return out
	case []any:
		var out []any
		for _, element := range v {
			for name, below := range fields {
				if key, is := strings.CutPrefix(name, "k:"); is && hasKeys(t, element, key) {
					part := owned(t, element, below.(map[string]any)).(map[string]any)
					out = append(out, part)
				}
			}
		}
		if out == nil {
			return v
		}
		return out
	}
	return value
}

// hasKeys reports whether an element of a list has the keys in a JSON text.
func hasKeys(t *testing.T, element any, text string) bool {
	t.Helper()
	var keys map[string]any
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		t.Fatal(err)
	}
	m, is := element.(map[string]any)
	for key, want := range keys {
		have, want := mustJSON(t, m[key]), mustJSON(t, want)
		is = is && have == want
	}
	return is
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// leave brings a recording into a cluster as if the older engine had just ended. It returns the custom resource and the
// UIDs of its objects.
func leave(t *testing.T, s *env, all []*unstructured.Unstructured) (*unstructured.Unstructured, map[string]types.UID) {
	t.Helper()
	uids, objects := map[string]string{}, map[string]types.UID{}
	apply := func(u *unstructured.Unstructured) {
		t.Helper()
		was := string(u.GetUID())
		want := ownedBy(t, renamed(t, u, uids), cluster.FieldManager)
		err := harness.Suite.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(cluster.FieldManager), client.ForceOwnership)
		if err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		uids[was] = string(want.GetUID())
		objects[u.GetKind()+" "+u.GetName()] = want.GetUID()
	}
	cr := all[0].DeepCopy()
	fresh := harness.Object(cr.GetAPIVersion(), cr.GetKind(), s.Namespace, cr.GetName())
	fresh.Object["spec"] = cr.Object["spec"]
	created := s.Create(fresh)
	kept := harness.Object(cr.GetAPIVersion(), cr.GetKind(), s.Namespace, cr.GetName())
	kept.SetFinalizers(cr.GetFinalizers())
	if err := harness.Suite.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(kept), client.FieldOwner(cluster.FieldManager+"-finalizer")); err != nil {
		t.Fatal(err)
	}
	uids[string(cr.GetUID())] = string(created.GetUID())
	for _, u := range all[1:] {
		apply(u)
	}
	status := renamed(t, cr, uids)
	status.Object = map[string]any{"apiVersion": cr.GetAPIVersion(), "kind": cr.GetKind(), "status": status.Object["status"], "metadata": map[string]any{"name": cr.GetName(), "namespace": s.Namespace}}
	err := harness.Suite.Admin.SubResource("status").Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(cluster.FieldManager), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
	return created, objects
}

func TestWhatAnOlderEngineHasLeftIsTakenOver(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(harness.Suite.Root, filepath.FromSlash(recordings)))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no recordings: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			if err := harness.InstallCRDs(t.Context(), harness.PackageDir("webapp")); err != nil {
				t.Fatal(err)
			}
			all := recorded(t, file, s.Namespace)
			cr, objects := leave(t, s, all)
			from := harness.MarkAudit(t)
			s.StartOperator(harness.PackageDir("webapp"))
			s.ExpectResourceReady(cr)
			for _, u := range all[1:] {
				got, err := harness.GetOrNil(t.Context(), u)
				if err != nil || got == nil || got.GetUID() != objects[u.GetKind()+" "+u.GetName()] {
					t.Errorf("%s %s is gone, or another one: %v", u.GetKind(), u.GetName(), err)
				}
			}
			t.Logf("requests: %s", s.OperatorRequests(from))
			for _, e := range s.OperatorRequests(from).Filter(deletesOrCreates) {
				t.Errorf("%d %s %s", e.Code, e.Verb, e.RequestURI)
			}
			s.Delete(cr) // its inventory has all of them
			s.ExpectGone(cr)
			for _, u := range all[1:] {
				s.ExpectGone(u)
			}
		})
	}
}

// deletesOrCreates reports whether a request has deleted an object of a custom resource, or made one.
func deletesOrCreates(e controlplane.AuditEvent) bool {
	own := []string{"events", "selfsubjectaccessreviews", "customresourcedefinitions"}
	return !slices.Contains(own, e.Resource) && (e.Verb == "delete" || e.Verb == "create" || e.Verb == "patch" && e.Code == 201)
}
