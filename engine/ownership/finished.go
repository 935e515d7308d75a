package ownership

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// A FinishState says how an object finished that runs to completion, such as a Job. An object that
// has finished may delete itself; it counts as applied all the same.
type FinishState string

// The ways to finish.
const (
	// NotFinished: it runs, or its kind does not finish.
	NotFinished FinishState = ""
	// Succeeded: it did its work.
	Succeeded FinishState = "Succeeded"
	// Failed: it did not, and Kubernetes does not retry it.
	Failed FinishState = "Failed"
)

// finishing are the kinds that run to completion.
var finishing = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                 true,
	{Group: "batch", Kind: "Job"}: true,
}

// MayFinish reports whether objects of a kind run to completion.
func MayFinish(kind schema.GroupKind) bool { return finishing[kind] }

// Content returns the digest of a manifest, made with a key. It leaves out apiVersion and metadata,
// whose changes do not make anything run again. It is "" for kinds that do not finish.
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

// RanWith reports whether a finished object was applied with the content of a manifest. Inventories
// that are older than the keys have the digest without one.
func (e Entry) RanWith(manifest map[string]any, key string) bool {
	kind := e.Ref("").GroupKind()
	return e.Content == Content(kind, manifest, key) || key != "" && e.Content == Content(kind, manifest, "")
}

// WithFinished returns the inventory with how an object finished, given its last state. An object
// that was applied with other content than the inventory has counts as not finished.
func (inv Inventory) WithFinished(ownerNamespace string, last *unstructured.Unstructured, how FinishState) Inventory {
	ref := cluster.RefOf(last).Identity()
	return inv.edited(func(_ string, e *Entry) {
		if e.Ref(ownerNamespace).Identity() != ref {
			return
		}
		e.Ended, e.Last = NotFinished, ""
		if how != NotFinished && e.Content != "" && last.GetAnnotations()[AppliedAnnotation] == e.Digest {
			e.Ended, e.Last = how, shortStatus(last)
		}
	})
}

// maxShortStatus is the limit of a stored status in bytes. There may be many Jobs, and the resource
// has to fit into the store of the API server.
const maxShortStatus = 512

// A shortCondition has the fields of a condition that are kept.
type shortCondition struct {
	Reason string `json:"reason,omitempty"`
	Status string `json:"status,omitempty"`
	Type   string `json:"type,omitempty"`
}

// shortStatus returns what is kept of the status of an object that has finished: its plain
// fields, and type, status and reason of its conditions. It leaves out messages, which may be
// long and may quote what a container has printed.
func shortStatus(u *unstructured.Unstructured) string {
	whole, _ := u.Object["status"].(map[string]any)
	kept := map[string]any{}
	for k, v := range whole {
		switch v.(type) {
		case map[string]any, []any, nil:
		default:
			if k != "message" {
				kept[k] = v
			}
		}
	}
	var conditions []shortCondition
	all, _ := whole["conditions"].([]any)
	for _, c := range all {
		m, _ := c.(map[string]any)
		conditions = append(conditions, shortCondition{textAt(m, "reason"), textAt(m, "status"), textAt(m, "type")}) // a field of another type is left out
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

// FinishedObject returns what a package sees of an object that has finished and is gone: its identity
// and its last status.
func (e Entry) FinishedObject(ownerNamespace string) *unstructured.Unstructured {
	u := e.Ref(ownerNamespace).Object("")
	last := map[string]any{}
	if e.Last != "" && utiljson.Unmarshal([]byte(e.Last), &last) == nil {
		u.Object["status"] = last
	}
	return u
}
