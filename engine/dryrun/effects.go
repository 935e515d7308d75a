package dryrun

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// An Outcome is what changes do to an object all in all.
type Outcome string

// The outcomes. What somebody may regret comes first.
const (
	Recreated Outcome = "recreated"
	Deleted   Outcome = "deleted"
	Updated   Outcome = "updated"
	Created   Outcome = "created"
)

// Outcomes are all outcomes, in the order in which they are listed.
var Outcomes = []Outcome{Recreated, Deleted, Updated, Created}

// An Effect is what changes do to one object.
type Effect struct {
	Ref     cluster.Ref
	Outcome Outcome
	// Before is the object before the first change, and After behind the last one, where the changes have them.
	Before, After *unstructured.Unstructured
}

// Effects returns what changes do to each object, in the order of their first changes. An object that they create
// and delete again is left out. wanted reports whether a deleted object is made anew by a later step; it may be nil.
func Effects(changes []cluster.ObjectChange, wanted func(cluster.Ref) bool) []Effect {
	at := map[cluster.Ref]int{}
	var all []Effect
	var first []cluster.Operation
	for _, c := range changes {
		id := c.Ref.Identity()
		i, known := at[id]
		if !known {
			i = len(all)
			at[id], all, first = i, append(all, Effect{Ref: c.Ref, Before: c.Before}), append(first, c.Operation)
		}
		all[i] = all[i].and(c, first[i])
	}
	var out []Effect
	for i, e := range all {
		switch {
		case e.Outcome == Deleted && first[i] == cluster.Created:
			continue
		case e.Outcome == Deleted && wanted != nil && wanted(e.Ref):
			e.Outcome = Recreated
		}
		out = append(out, e)
	}
	return out
}

// and returns the effect with one more change, given the operation of the first one.
func (e Effect) and(c cluster.ObjectChange, first cluster.Operation) Effect {
	switch c.Operation {
	case cluster.Deleted:
		e.Outcome, e.After = Deleted, nil
		return e
	case cluster.Created:
		if e.Outcome = Created; first != cluster.Created {
			e.Outcome = Recreated
		}
	case cluster.Updated:
		if e.Outcome == "" {
			e.Outcome = Updated
		}
		if c.Object != nil && c.Object.GetDeletionTimestamp() != nil {
			e.Outcome = Deleted // once its finalizers are gone
		}
	}
	e.After = c.Object
	return e
}
