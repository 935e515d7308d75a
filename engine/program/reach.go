package program

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A Reach is what the package may own, and what it may read as inputs, beyond the
// namespace of the custom resource. The zero value allows nothing.
type Reach struct{ kinds map[schema.GroupKind]extent }

// extent is how far a package reaches for one kind.
type extent struct {
	// readOnly is true if objects there are read and never owned.
	readOnly bool
	// namespaces are names, beginnings of names with a * behind them, or * for any.
	namespaces map[string]bool
}

// anyNamespace stands for every namespace.
const anyNamespace = "*"

// reachHint explains how a package declares its reach beyond the namespace.
const reachHint = `reach at the root of the package names the kinds and namespaces, as in reach: {Namespace: {}, "Deployment.apps": namespaces: monitoring: true}`

// MayOwn returns nil if a resource of the namespace home may own an object of a kind in
// a namespace, and an *OutOfReachError otherwise. The namespace of a cluster-scoped object is
// empty. A cluster-scoped resource has no home, and may own whatever the package renders: whoever
// may write the resource acts for the whole cluster.
func (r Reach) MayOwn(home string, kind schema.GroupKind, namespace string) error {
	at, reaches := r.kinds[kind]
	if home == "" || namespace == home || reaches && !at.readOnly && at.has(namespace) {
		return nil
	}
	return &OutOfReachError{Home: home, Kind: kind, Namespace: namespace}
}

// MayRead returns nil if a resource of the namespace home may read objects of a kind in a
// namespace, and an *OutOfReachError otherwise. Cluster-scoped objects may be read.
func (r Reach) MayRead(home string, kind schema.GroupKind, namespace string) error {
	at, reaches := r.kinds[kind]
	if home == "" || namespace == "" || namespace == home || reaches && at.has(namespace) {
		return nil
	}
	return &OutOfReachError{Home: home, Kind: kind, Namespace: namespace, Reads: true}
}

// Kinds returns the kinds that the reach of the package names.
func (r Reach) Kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(r.kinds), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// Namespaces returns the namespaces that the reach of the package names for a kind, sorted. A * at the
// end stands for any rest.
func (r Reach) Namespaces(kind schema.GroupKind) []string {
	return slices.Sorted(maps.Keys(r.kinds[kind].namespaces))
}

// OwnsBeyondNamespace reports whether the package may own anything beyond the namespace of the custom
// resource.
func (r Reach) OwnsBeyondNamespace() bool {
	for _, e := range r.kinds {
		if !e.readOnly {
			return true
		}
	}
	return false
}

// HasPattern reports whether the reach of a kind includes namespaces by pattern instead of by name.
func (r Reach) HasPattern(kind schema.GroupKind) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.kinds[kind].namespaces)), func(pattern string) bool {
		return strings.HasSuffix(pattern, anyNamespace)
	})
}

// has reports whether a namespace is within the extent. Cluster-scoped objects always are.
func (e extent) has(namespace string) bool {
	return namespace == "" || slices.ContainsFunc(slices.Collect(maps.Keys(e.namespaces)), func(pattern string) bool {
		start, open := strings.CutSuffix(pattern, anyNamespace)
		return e.namespaces[pattern] && pattern == namespace || open && strings.HasPrefix(namespace, start)
	})
}

// An OutOfReachError reports an object, owned or read, outside the namespace of its custom
// resource and outside the reach of the package.
type OutOfReachError struct {
	// Home is the namespace of the custom resource.
	Home string
	Kind schema.GroupKind
	// Namespace is where the object is, or empty if it is cluster-scoped.
	Namespace string
	// Reads is true if the object is read and not owned.
	Reads bool
}

// Error returns where the object is and what would allow it.
func (e *OutOfReachError) Error() string { return e.where() + "; " + e.Hint() + " allows that" }

// where returns where the object is.
func (e *OutOfReachError) where() string {
	whose, where := "owner", "it is in namespace "+e.Namespace
	if e.Reads {
		whose = "reader"
	}
	if e.Namespace == "" {
		where = e.Kind.String() + " is cluster-scoped"
	}
	return fmt.Sprintf("%s, and its %s is in namespace %s", where, whose, e.Home)
}

// Hint returns what to write in the package, if it is meant.
func (e *OutOfReachError) Hint() string {
	key := e.Kind.String()
	if strings.Contains(key, ".") {
		key = fmt.Sprintf("%q", key)
	}
	switch {
	case e.Namespace == "":
		return fmt.Sprintf("reach: %s: {} at the root of the package", key)
	case e.Reads:
		return fmt.Sprintf("reach: %s: {access: \"read\", namespaces: %q: true} at the root of the package", key, e.Namespace)
	}
	return fmt.Sprintf("reach: %s: namespaces: %q: true at the root of the package", key, e.Namespace)
}

// Reach returns the reach that the package declares.
func (p *Program) Reach() Reach { return p.reach }

// readReach reads the reach that the package declares.
func readReach(static cue.Value) Reach {
	r := Reach{kinds: map[schema.GroupKind]extent{}}
	for name, v := range fields(Lookup(static, "reach")) {
		e := extent{readOnly: stringOr(Lookup(v, "access"), "") == "read", namespaces: map[string]bool{}}
		for namespace, yes := range fields(Lookup(v, "namespaces")) {
			e.namespaces[namespace], _ = yes.Bool()
		}
		r.kinds[schema.ParseGroupKind(name)] = e
	}
	return r
}

// reachFaults finds a reach that depends on the custom resource or on any value from outside the
// package: whoever may write that value would choose where objects are.
func reachFaults(x *syntax.Index) fault.Faults {
	var out fault.Faults
	for _, f := range x.FieldRestsOn("reach") {
		out = append(out, fault.Fault{
			Position: f.Position,
			Path:     "reach",
			Message:  "rests on " + f.String() + ", and it says where objects may be, whoever writes a custom resource",
			Hint:     `write the kinds and namespaces out; namespaces: "*": true is any namespace, and "team-*": true any that begins so`,
		})
	}
	return out
}

// String returns the reach as text that [ParseReach] reads: kinds by name, each with its
// namespaces after =, and with the prefix read: if its objects are only read.
func (r Reach) String() string {
	var out []string
	for kind, e := range r.kinds {
		text := kind.String()
		if e.readOnly {
			text = onlyRead + text
		}
		if len(e.namespaces) > 0 {
			text += "=" + strings.Join(slices.Sorted(maps.Keys(e.namespaces)), ",")
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// onlyRead is the prefix of a kind whose objects are read and not owned.
const onlyRead = "read:"

// The patterns of a reach. The contract has the same ones.
var (
	reachKind      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	reachNamespace = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|([a-z0-9][-a-z0-9]*)?\*)$`)
)

// ParseReach reads what [Reach.String] returns. It errors for any other text,
// because the reach decides which objects may be deleted.
func ParseReach(text string) (Reach, error) {
	r := Reach{kinds: map[schema.GroupKind]extent{}}
	if text == "" {
		return r, nil
	}
	for entry := range strings.SplitSeq(text, " ") {
		name, namespaces, several := strings.Cut(entry, "=")
		name, readOnly := strings.CutPrefix(name, onlyRead)
		e := extent{readOnly: readOnly, namespaces: map[string]bool{}}
		if !reachKind.MatchString(name) {
			return Reach{}, fmt.Errorf("reach: %q is no kind, such as Deployment.apps", name)
		}
		for namespace := range strings.SplitSeq(namespaces, ",") {
			if !several {
				break
			}
			if !reachNamespace.MatchString(namespace) {
				return Reach{}, fmt.Errorf("reach: %s: %q is no namespace", name, namespace)
			}
			e.namespaces[namespace] = true
		}
		r.kinds[schema.ParseGroupKind(name)] = e
	}
	if r.String() != text {
		return Reach{}, fmt.Errorf("reach: %q is not as it was written: it would be %q", text, r)
	}
	return r, nil
}
