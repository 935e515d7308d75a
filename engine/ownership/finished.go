package ownership

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// An FinishState is how an object ended that is made to end, such as a Job. What has ended
// may remove itself, and has been there all the same.
type FinishState string

// The endings.
const (
	// NotFinished: it runs, or is of a kind that does not end.
	NotFinished FinishState = ""
	// Succeeded: it has done what it was made for.
	Succeeded FinishState = "Succeeded"
	// Failed: it has not, and is not tried again by itself.
	Failed FinishState = "Failed"
)

// finishing are the kinds that may end.
var finishing = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                 true,
	{Group: "batch", Kind: "Job"}: true,
}

// MayFinish reports whether objects of a kind may end.
func MayFinish(kind schema.GroupKind) bool { return finishing[kind] }

// Content returns the digest of what a manifest asks for, made with a key: all of it but
// its version and its metadata, of which a change makes nothing run again. It is "" for
// kinds that do not end.
func Content(kind schema.GroupKind, manifest map[string]any, key string) string {
	if !MayFinish(kind) {
		return ""
	}
	wanted := map[string]any{}
	for k, v := range manifest {
		if k != "apiVersion" && k != "metadata" {
			wanted[k] = v
		}
	}
	digest, err := program.Digest(key, wanted)
	if err != nil {
		return "" // it was encoded before
	}
	return digest
}

// Ran reports whether an object that has ended was applied with what a manifest asks for.
// An inventory of before there were keys has the digest without one.
func (e Entry) Ran(manifest map[string]any, key string) bool {
	kind := e.Ref("").GroupKind()
	return e.Content == Content(kind, manifest, key) || key != "" && e.Content == Content(kind, manifest, "")
}

// WithFinished returns the inventory with how an object has ended whose last state is known.
// One that was applied with other content than the inventory knows has ended as nothing
// that is wanted.
func (inv Inventory) WithFinished(ownerNamespace string, last *unstructured.Unstructured, how FinishState) Inventory {
	return inv.changed(ownerNamespace, last, func(e *Entry) {
		if e.Ended, e.Last = NotFinished, ""; how != NotFinished && e.Content != "" && last.GetAnnotations()[AppliedMark] == e.Digest {
			e.Ended, e.Last = how, shortStatus(last)
		}
	})
}

// changed returns the inventory with a change of an object's entry.
func (inv Inventory) changed(ownerNamespace string, object *unstructured.Unstructured, change func(*Entry)) Inventory {
	ref := cluster.RefOf(object).Identity()
	for i, g := range inv {
		for j, e := range g.Objects {
			if e.Ref(ownerNamespace).Identity() != ref {
				continue
			}
			change(&e)
			if e == g.Objects[j] {
				return inv
			}
			out := slices.Clone(inv)
			out[i].Objects = slices.Clone(g.Objects)
			out[i].Objects[j] = e
			return out
		}
	}
	return inv
}

// maxShortStatus is how long what is kept of a status may be. There may be many Jobs, and a
// resource has to fit into the store of the API server.
const maxShortStatus = 512

// conditionFields are the fields of a condition that are kept.
var conditionFields = []string{"type", "status", "reason"}

// shortStatus returns what is kept of the status of an object that has ended: its plain
// fields, and the type, status and reason of its conditions. Texts that others wrote
// are left out: they may be long, or hold what a container has printed.
func shortStatus(u *unstructured.Unstructured) string {
	said, _ := u.Object["status"].(map[string]any)
	kept := map[string]any{}
	for k, v := range said {
		switch v.(type) {
		case map[string]any, []any, nil:
		default:
			if k != "message" {
				kept[k] = v
			}
		}
	}
	var conditions []any
	all, _ := said["conditions"].([]any)
	for _, c := range all {
		m, _ := c.(map[string]any)
		short := map[string]any{}
		for _, k := range conditionFields {
			if text, ok := m[k].(string); ok {
				short[k] = text
			}
		}
		conditions = append(conditions, short)
	}
	if len(conditions) > 0 {
		kept["conditions"] = conditions
	}
	b, err := json.Marshal(kept)
	if err != nil || len(b) > maxShortStatus {
		return ""
	}
	return string(b)
}

// Remembered returns what a package sees of an object that has ended and is gone: its
// identity, and what its status said last.
func (e Entry) Remembered(ownerNamespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	ref := e.Ref(ownerNamespace)
	u.SetGroupVersionKind(ref.GroupVersionKind)
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	said := map[string]any{}
	if e.Last != "" && utiljson.Unmarshal([]byte(e.Last), &said) == nil {
		u.Object["status"] = said
	}
	return u
}
