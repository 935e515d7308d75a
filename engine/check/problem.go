package check

import (
	"regexp"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// A problem is a fault that a case shows.
type problem struct {
	fault fault.Fault
	// live are the objects in the cluster when it showed. It is early if the operator had made none of them.
	live  []map[string]any
	early bool
	// isSmall is true if there is no smaller resource to look for.
	isSmall bool
	// isOwn is true if no value of an input can have caused it.
	isOwn bool
	// predicate is the path of the predicate that is false for good in this case, or "". It is a fault only if
	// it is true in no case.
	predicate string
}

// key is what the same problem has in all cases: its place, but not the values in its message.
func (p problem) key() string {
	path := furtherKey.ReplaceAllString(p.fault.Path, madeKey)
	return p.fault.Position.String() + " " + strings.ReplaceAll(path, `"`, "") + " " + p.fault.Code.String()
}

// furtherKey matches the keys of a map behind the first one: what is wrong with them is the same.
var furtherKey = regexp.MustCompile(`\b` + madeKey + `-[0-9]+\b`)

// place is where the problem is in the text. Its path may differ with the values of Secrets, whose words are in no message.
func (p problem) place() string {
	if p.fault.Position.IsZero() {
		return p.key()
	}
	return p.fault.Position.String() + " " + p.fault.Code.String()
}

// An outcome is what became of a case.
type outcome struct {
	// refused says that the schema does not accept the resource.
	refused bool
	// ready says that it became ready.
	ready    bool
	problems []problem
	// known is true if it has a problem that is known without resources.
	known bool
	// rejected says why objects were refused in the end, if they were.
	rejected *fault.Fault
	// samples are the values of inputs that may have caused a problem.
	samples []*sample
	// held are the paths of the predicates that were true.
	held []string
	// settled is what was evaluated in the end, and given are the objects of inputs by then.
	settled program.Session
	// keyed is true if a name contains the key of a map.
	keyed bool
	given []map[string]any
}

// add adds a problem, once.
func (o *outcome) add(p problem) {
	for _, known := range o.problems {
		if known.key() == p.key() {
			return
		}
	}
	o.problems = append(o.problems, p)
}

// index returns the index of the problem with a key, or -1.
func (o *outcome) index(key string) int {
	return slices.IndexFunc(o.problems, func(p problem) bool { return p.key() == key })
}

// has reports whether there is a problem at the place of another one.
func (o *outcome) has(other problem) bool {
	return slices.ContainsFunc(o.problems, func(p problem) bool { return p.place() == other.place() })
}
