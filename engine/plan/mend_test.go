package plan_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
)

// repeating is a package whose ConfigMap stays as others have edited it.
const repeating = `
#Spec: size: int | *1
inputs: login: {apiVersion: "v1", kind: "Secret", name: "login"}
inputs: other: {apiVersion: "v1", kind: "ConfigMap", name: "other"}
inputs: absent: {apiVersion: "v1", kind: "ConfigMap", name: "canary-8f3a91"}
components: own: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "own", data: size: "\(cr.spec.size)"}
`

func TestADumpMasksWhatOtherObjectsRepeatOfASecret(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		value  string
		other  map[string]any
	}{
		"a label": {
			"a label of another object is as public as its data", token,
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"copy": token}}},
		},
		"a value in the fields of a manager": {
			"a set has its values as keys there", token,
			map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{
				"manager": "person", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:finalizers": map[string]any{`v:"` + token + `"`: map[string]any{}, `k:{"name":"` + token + `"}`: map[string]any{}}}},
			}}}},
		},
		"a weak value": {
			"a common word may be a password", "password",
			map[string]any{"data": map[string]any{"mode": "password"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := login()
			secret.SetAnnotations(nil)
			secret.Object["data"] = map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(row.value))}
			p := load(t, repeating)
			other := object("ConfigMap", "other", row.other)
			on := serve(t, p, secret, other, shop("a", map[string]any{}))
			head, lines := unpack(t, dumped(t, replacing{on, other}, plan.Options{New: plan.Version{Program: p}}))
			if !bytes.Contains(lines, []byte(`"other"`)) {
				t.Fatal("the dump does not have the other object")
			}
			if bytes.Contains(lines, []byte(row.value)) || bytes.Contains(head, []byte(row.value)) {
				t.Errorf("%s: the dump has %q:\n%s\n%s", row.reason, row.value, head, lines)
			}
		})
	}
}

// replacing is a cluster in which one object is exactly as given.
type replacing struct {
	served
	object *unstructured.Unstructured
}

// Get implements dryrun.Source.
func (r replacing) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Identity() == cluster.RefOf(r.object).Identity() {
		return r.object, nil
	}
	return r.served.Get(ctx, ref)
}

// refusing is a cluster that refuses to read one kind.
type refusing struct {
	served
	kind string
	err  error
}

// Get implements dryrun.Source.
func (r refusing) Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == r.kind {
		return nil, r.err
	}
	return r.served.Get(ctx, ref)
}

// forge adds an entry to the inventory of a resource.
func forge(t *testing.T, on served, name string, entry map[string]any) {
	t.Helper()
	on.edit(t, "Shop", name, func(u *unstructured.Unstructured) {
		groups, _, _ := unstructured.NestedSlice(u.Object, "status", "inventory")
		group, _ := groups[0].(map[string]any)
		objects, _ := group["objects"].([]any)
		group["objects"] = append(objects, entry)
		if err := unstructured.SetNestedSlice(u.Object, groups, "status", "inventory"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAForgedEntryOfAnInventoryStopsNoDump(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "endpoints"}
	for name, err := range map[string]error{
		"a kind that cannot be read":        apierrors.NewMethodNotSupported(resource, http.MethodGet),
		"a namespace that one may not read": apierrors.NewForbidden(resource, "x", nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t, body)
			on := serve(t, p, shop("a", map[string]any{}), shop("b", map[string]any{}))
			forge(t, on, "a", map[string]any{"apiVersion": "v1", "kind": "Endpoints", "name": "x", "object": "x"})
			d := read(t, dumped(t, refusing{on, "Endpoints", err}, plan.Options{New: plan.Version{Program: p}}))
			if got := len(make1(t, plan.Options{Cluster: d, New: plan.Version{Program: p}}).Resources); got != 2 {
				t.Errorf("%d resources, want 2", got)
			}
		})
	}
}

func TestAForgedEntryOfAnInventoryPutsNoContentIntoADump(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	other := object("ConfigMap", "other", map[string]any{"data": map[string]any{"k": "of-somebody-else"}})
	other.SetAnnotations(map[string]string{"note": "of-somebody-else"})
	on := serve(t, p, other, shop("a", map[string]any{}))
	forge(t, on, "a", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "object": "other"})
	_, lines := unpack(t, dumped(t, on, plan.Options{New: plan.Version{Program: p}}))
	if !bytes.Contains(lines, []byte(`"other"`)) || bytes.Contains(lines, []byte(`"of-somebody-else"`)) {
		t.Errorf("an object without the proof of its owner is there with more than its name:\n%s", lines)
	}
}

// An operator has no right to get namespaces, and need not ask for one whose objects it may read.
func TestAPlanOfAnOperatorReadsNoNamespaces(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	on := serve(t, p, shop("a", map[string]any{}))
	o := plan.Options{Cluster: refusing{on, "Namespace", errors.New("somebody asks")}, New: plan.Version{Program: p}}
	if got := make1(t, o).Resources[0]; got.Class != plan.Failing && !got.Undecided.Passes() {
		t.Errorf("a plan of a user does not look whether the namespace exists: %+v", got)
	}
	o.AssumeNamespaces = true
	want := make1(t, plan.Options{Cluster: on, New: plan.Version{Program: p}})
	if diff := cmp.Diff(said(want), said(make1(t, o))); diff != "" {
		t.Errorf("the plan without namespaces (-want +got):\n%s", diff)
	}
}

func TestAGivenResourceThatIsBeingDeletedIsCreatedAnew(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	given := shop("fresh", map[string]any{})
	given.SetUID("old")
	given.SetResourceVersion("7")
	given.SetFinalizers([]string{"operetta.dev/teardown"})
	_ = unstructured.SetNestedField(given.Object, "2026-11-23T11:00:00Z", "metadata", "deletionTimestamp")
	got := make1(t, plan.Options{Cluster: serve(t, p, shop("a", map[string]any{})), New: plan.Version{Program: p}, Given: []*unstructured.Unstructured{given}})
	if len(got.Resources) != 1 || got.Resources[0].Class != plan.New {
		t.Errorf("got %v, want a resource that is created", said(got))
	}
}

func TestADumpTellsWhatWasNotAskedFromWhatIsNotServed(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	d := read(t, dumped(t, serve(t, p, shop("a", map[string]any{})), plan.Options{New: plan.Version{Program: p}}))
	if _, err := d.Scope(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}); !cluster.IsKindNotServed(err) {
		t.Fatalf("the error is %v", err)
	}
	want := []string{"the dump does not say whether the cluster serves DaemonSet.apps, so the plan takes it as not served"}
	if diff := cmp.Diff(want, d.Notes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADumpRemembersItsNamespaces(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	rows := map[string]struct {
		of      []string
		covers  [][]string
		refuses [][]string
		note    string
		reason  string
	}{
		"all":     {covers: [][]string{nil, {"default"}, {"a", "b"}}, reason: "whoever has all has each"},
		"one":     {of: []string{"default"}, covers: [][]string{nil, {"default"}}, refuses: [][]string{{"elsewhere"}, {"default", "elsewhere"}}, note: "the dump has the resources in the namespace default alone", reason: "nothing is known of another one"},
		"several": {of: []string{"default", "shops"}, covers: [][]string{nil, {"shops"}, {"default", "shops"}}, refuses: [][]string{{"elsewhere"}, {"elsewhere", "shops"}}, note: "the dump has the resources in the namespaces default, shops alone", reason: "a part of what is there may be planned"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := plan.NewRecorder(serve(t, p, shop("a", map[string]any{})), p.Name(), shopKind, now)
			r.Dump().Namespaces = row.of
			var out bytes.Buffer
			if err := r.Dump().Write(&out); err != nil {
				t.Fatal(err)
			}
			d := read(t, out.Bytes())
			for _, asked := range row.covers {
				if err := d.Covers(asked); err != nil {
					t.Errorf("%s: %q: %v", row.reason, asked, err)
				}
			}
			for _, asked := range row.refuses {
				if d.Covers(asked) == nil {
					t.Errorf("%s: %q is covered", row.reason, asked)
				}
			}
			if notes := strings.Join(d.Notes(), "\n"); notes != row.note {
				t.Errorf("%s: the notes are %q, want %q", row.reason, notes, row.note)
			}
		})
	}
}

func TestADumpThatNobodyCouldReadIsNotWritten(t *testing.T) {
	t.Parallel()
	p := load(t, body)
	r := plan.NewRecorder(serve(t, p, shop("a", map[string]any{"note": strings.Repeat("x", 17<<20)})), p.Name(), shopKind, now)
	if _, err := r.Resources(t.Context(), shopKind); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := r.Dump().Write(&out)
	if err == nil || !strings.Contains(err.Error(), "Shop default/a: it has more than 16777216 bytes") || out.Len() > 0 {
		t.Errorf("the error is %v, after %d bytes", err, out.Len())
	}
}
