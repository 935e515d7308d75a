package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/plan"
)

// A State says how a resource compares.
type State string

// The states. What keeps a comparison from saying more comes first.
const (
	// Unreadable resources cannot be compared, because something may not or cannot be read.
	Unreadable State = "unreadable"
	// Invalid resources do not satisfy the package, or show that it is wrong: nothing would be written.
	Invalid State = "invalid"
	// Different resources have objects that the package makes otherwise.
	Different State = "different"
	// Undecided resources have components that wait for something; what is decided is the same.
	Undecided State = "undecided"
	// Same resources have all objects as the package wants them, and no others.
	Same State = "same"
	// Deleting resources are being deleted, and are not compared.
	Deleting State = "deleting"
)

// States are all states, in the order in which they are listed.
var States = []State{Unreadable, Invalid, Different, Undecided, Same, Deleting}

// A Relation says how an object compares that is not the same.
type Relation string

// The relations.
const (
	// Missing objects are rendered and do not exist.
	Missing Relation = "missing"
	// Unrendered objects exist and belong to the resource, and nothing renders them.
	Unrendered Relation = "unrendered"
	// Changed objects are rendered and exist with other fields.
	Changed Relation = "different"
	// Going objects are rendered and being deleted.
	Going Relation = "going"
)

// A Resource is how one custom resource compares.
type Resource struct {
	Package    string `json:"package"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	State      State  `json:"state"`
	// Paused says that nothing would be written until somebody ends the pause.
	Paused bool `json:"paused,omitempty"`
	// Objects are those that are not the same.
	Objects []Object `json:"objects,omitempty"`
	// Undecided is what is not known yet, and why.
	Undecided []plan.Problem `json:"undecided,omitempty"`
	// Problems are what is wrong.
	Problems []plan.Problem `json:"problems,omitempty"`
	// Hooks are those that may run once the kind is handed over. They are not compared.
	Hooks []string `json:"hooks,omitempty"`
	// Owners say which objects have another controller than the resource. Whether that is so is not compared.
	Owners []string `json:"owners,omitempty"`
}

// An Object is an object that is not the same.
type Object struct {
	Component  string   `json:"component,omitempty"`
	Relation   Relation `json:"relation"`
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	Fields     []Field  `json:"fields,omitempty"`
	// MoreFields is how many fields are not listed.
	MoreFields int `json:"moreFields,omitempty"`
	// Alike is an object that exists and is not rendered, and that a missing one may be under another name.
	Alike string `json:"alike,omitempty"`
}

// A Field is a field that differs, with its values as text in which Secrets are masked. "" is none.
type Field struct {
	Path   string `json:"path"`
	Live   string `json:"live,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	// Managers own the live field.
	Managers []string `json:"managers,omitempty"`
}

// A Summary is how many resources there are in each state.
type Summary struct {
	// All is how many resources there are, without those that are being deleted.
	All        int `json:"all"`
	Same       int `json:"same"`
	Different  int `json:"different"`
	Undecided  int `json:"undecided"`
	Invalid    int `json:"invalid"`
	Unreadable int `json:"unreadable"`
	Deleting   int `json:"deleting"`
	// Pending is how many were not compared yet.
	Pending int `json:"pending"`
}

// fields returns how many fields of objects differ.
func (r Resource) fields() int {
	n := 0
	for _, o := range r.Objects {
		n += len(o.Fields) + o.MoreFields
	}
	return n
}

// with returns how many objects have a relation.
func (r Resource) with(of Relation) int {
	n := 0
	for _, o := range r.Objects {
		if o.Relation == of {
			n++
		}
	}
	return n
}

// classify sets the state by what was found.
func (r *Resource) classify() {
	slices.SortStableFunc(r.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(slices.Index(relations, a.Relation), slices.Index(relations, b.Relation)), strings.Compare(a.String(), b.String()))
	})
	switch {
	case len(r.Problems) > 0:
		r.State = Invalid
	case len(r.Objects) > 0:
		r.State = Different
	case len(r.Undecided) > 0:
		r.State = Undecided
	default:
		r.State = Same
	}
}

// relations are all relations, in the order in which they are listed.
var relations = []Relation{Missing, Going, Unrendered, Changed}

// Title is the resource as a person writes it.
func (r Resource) Title() string { return titleOf(r.Kind, r.Namespace, r.Name) }

// String returns the object as a person writes it.
func (o Object) String() string { return titleOf(o.Kind, o.Namespace, o.Name) }

func titleOf(kind, namespace, name string) string {
	return plan.Object{Kind: kind, Namespace: namespace, Name: name}.String()
}

// Headline says in a few words how the resource compares.
func (r Resource) Headline() string {
	var parts []string
	if n := r.fields(); n > 0 {
		parts = append(parts, "differs in "+plan.Plural(n, "field"))
	}
	for _, of := range []Relation{Missing, Going, Unrendered} {
		if n := r.with(of); n > 0 {
			parts = append(parts, plan.Plural(n, "object")+" "+relationWords[of])
		}
	}
	switch {
	case r.State == Unreadable || r.State == Invalid:
		parts = append([]string{string(r.State)}, parts...)
	case r.State == Deleting:
		parts = append(parts, "is being deleted, and is not compared")
	case len(r.Undecided) > 0:
		parts = append(parts, fmt.Sprintf("%d undecided", len(r.Undecided)))
	case r.State == Same:
		parts = append(parts, "same")
	}
	if r.Paused {
		parts = append(parts, "paused")
	}
	return strings.Join(parts, ", ")
}

// relationWords say what objects with a relation are.
var relationWords = map[Relation]string{Missing: "missing", Going: "being deleted", Unrendered: "not rendered", Changed: "different"}

// add counts a resource.
func (s *Summary) add(state State) {
	switch state {
	case Same:
		s.Same++
	case Different:
		s.Different++
	case Undecided:
		s.Undecided++
	case Invalid:
		s.Invalid++
	case Unreadable:
		s.Unreadable++
	case Deleting:
		s.Deleting++
		return
	case "":
		s.Pending++
	}
	s.All++
}

// String returns the summary on one line.
func (s Summary) String() string {
	out := fmt.Sprintf("%d of %s are the same", s.Same, plan.Plural(s.All, "resource"))
	if s.All == 1 {
		out = fmt.Sprintf("%d of 1 resource is the same", s.Same)
	}
	var rest []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Different, "different"}, {s.Invalid, "invalid"}, {s.Undecided, "undecided"}, {s.Unreadable, "unreadable"},
		{s.Pending, "not compared yet"}, {s.Deleting, "being deleted"},
	} {
		if part.n > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(rest) > 0 {
		out += "; " + strings.Join(rest, ", ")
	}
	return out
}

// IsDone reports whether all resources were compared and are the same. If there is none, nothing was compared.
func (s Summary) IsDone() bool { return s.All > 0 && s.Same == s.All }
