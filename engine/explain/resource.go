package explain

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// A Resource is a custom resource and what is known of its rollout. Its form as JSON is documented for
// scripts, in docs/explain.md.
type Resource struct {
	Object
	// Phase is "" as long as no operator has written a status.
	Phase status.Phase `json:"phase,omitempty"`
	// Ready is how many of the components are ready, such as "2/3".
	Ready string `json:"componentsReady,omitempty"`
	// Generation is that of the spec, and ObservedGeneration that of the spec which the status is about.
	Generation         int64 `json:"generation"`
	ObservedGeneration int64 `json:"observedGeneration"`
	// Package is the package that was served last, and Digest its content.
	Package string `json:"package,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Fault says why a part of the status cannot be read.
	Fault string `json:"fault,omitempty"`
	// Conditions are those that say that something is not as it should be.
	Conditions []Condition `json:"conditions,omitempty"`
	since      time.Time
	// Components are in the author's order. Those that the package no longer has follow.
	Components []Component `json:"components,omitempty"`
	// Writes are the last writes to the resource and its objects by anybody but the engine, the newest first.
	Writes []Write `json:"writes,omitempty"`
	// Operator is what the operator knows of the last reconciles, and OperatorMissing why that is not there.
	Operator        *history.Report `json:"operator,omitempty"`
	OperatorMissing string          `json:"operatorMissing,omitempty"`
}

// A Condition is one that needs attention.
type Condition struct {
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// A Component is one component of a resource.
type Component struct {
	Name    string        `json:"name"`
	State   status.State  `json:"state"`
	Reason  status.Reason `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
	// Since is when the component came into its state; it is missing if nothing is left to do.
	Since *time.Time `json:"since,omitempty"`
	// DependsOn are the components that this one needs. If neither they nor this one lack objects, they are those whose objects
	// were written before.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Blocks lists the components that wait for this one, as a text.
	Blocks  string   `json:"blocks,omitempty"`
	Objects []Object `json:"objects,omitempty"`
}

// An Object is an object of the cluster.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Health     Health `json:"health"`
	// Message says why it is not ready.
	Message string `json:"message,omitempty"`
	// Causes are the objects below it that are not ready, such as its newest Pod that is not.
	Causes []Object `json:"causes,omitempty"`
}

// Health is what was seen of an object.
type Health string

// What may be seen of an object.
const (
	Ready      Health = "Ready"
	NotReady   Health = "NotReady"
	Failed     Health = "Failed"
	Deleting   Health = "Deleting"
	Missing    Health = "Missing"
	Unreadable Health = "Unreadable"
	// Foreign objects are where one of the resource should be, and belong to somebody else.
	Foreign Health = "Foreign"
)

func objectOf(ref object.Ref, health Health, message string) Object {
	return Object{
		APIVersion: ref.GroupVersion().String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Health: health, Message: message,
	}
}

// Summary explains a resource by its status alone: nothing is read.
func Summary(u *unstructured.Unstructured) Resource {
	out, _ := describe(u)
	return out
}

// Since returns since when a resource is as it is: when its condition Ready changed. It is the zero value if
// there is no such condition.
func (r Resource) Since() time.Time { return r.since }

// describe returns what the status of a resource says, without its live objects, and the inventory.
func describe(u *unstructured.Unstructured) (Resource, ownership.Inventory) {
	s, _, _ := unstructured.NestedMap(u.Object, "status")
	said := status.Summarize(s)
	r := Resource{Object: objectOf(object.RefOf(u), NotReady, ""), Phase: said.Phase, Digest: said.Digest, Generation: u.GetGeneration()}
	r.Ready, _, _ = unstructured.NestedString(s, "componentsReady")
	r.ObservedGeneration, _, _ = unstructured.NestedInt64(s, "observedGeneration")
	r.Package, _, _ = unstructured.NestedString(s, "package", "name")
	r.Conditions = attention(s)
	if c := status.Condition(s, status.ConditionReady); c != nil {
		r.since = c.LastTransitionTime.Time
	}
	r.Health, r.Message = overall(u, r, s)
	inventory, err := ownership.InventoryOf(u)
	if err != nil {
		r.Fault = "the inventory in the status cannot be read: " + err.Error()
	}
	r.Components = components(status.ComponentTexts(s), inventory)
	return r, inventory
}

// overall says in one word how a resource is, and why it is not ready.
func overall(u *unstructured.Unstructured, r Resource, s map[string]any) (Health, string) {
	why := ""
	if c := status.Condition(s, status.ConditionReady); c != nil && c.Status != "True" {
		why = cmp.Or(c.Message, c.Reason)
	}
	switch {
	case u.GetDeletionTimestamp() != nil:
		return Deleting, why
	case r.Phase == "":
		return NotReady, "no operator has written a status yet"
	case r.ObservedGeneration != r.Generation:
		return NotReady, "the status is about an earlier version of the spec"
	case r.Phase == status.PhaseFailed:
		return Failed, why
	case r.Phase == status.PhaseReady:
		return Ready, ""
	}
	return NotReady, why
}

// attention returns the conditions of the engine that say that something is wrong. Ready and Reconciling
// say what the phase and the components say.
func attention(s map[string]any) []Condition {
	var out []Condition
	for _, kind := range status.Conditions {
		if kind == status.ConditionReady || kind == status.ConditionReconciling {
			continue
		}
		if c := status.Condition(s, kind); c != nil && c.Status == "True" {
			out = append(out, Condition{Type: kind, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time})
		}
	}
	return out
}

// components returns the components of a status, and those that only an inventory has.
func components(all []status.ComponentText, inventory ownership.Inventory) []Component {
	var out []Component
	for _, said := range all {
		c := Component{Name: said.Name, State: said.State, Reason: said.Reason, Message: said.Message, Blocks: said.Blocks, DependsOn: said.DependsOn}
		if !said.Since.IsZero() {
			since := said.Since
			c.Since = &since
		}
		out = append(out, c)
	}
	for _, g := range inventory {
		at := slices.IndexFunc(out, func(c Component) bool { return c.Name == g.Component })
		if at < 0 {
			// The package renders it no longer.
			out = append(out, Component{Name: g.Component, State: status.Deleting})
			at = len(out) - 1
		}
		if len(out[at].DependsOn) == 0 {
			out[at].DependsOn = g.DependsOn
		}
	}
	return out
}
