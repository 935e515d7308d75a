package shadow

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"operetta.dev/engine/cluster"
)

// Ignored are objects that only the other operator needs, such as its own records.
type Ignored struct {
	// Kind is a kind, with its group behind a dot or without.
	Kind string
	// Name is a pattern of names, as in a shell.
	Name string
}

// helmReleases are the Secrets in which Helm records its releases. No package renders them.
var helmReleases = Ignored{Kind: "Secret", Name: "sh.helm.release.v1.*"}

// ParseIgnored reads a kind and a pattern of names, as in ConfigMap/leader-*. Without a pattern, all objects of the
// kind are meant.
func ParseIgnored(text string) (Ignored, error) {
	kind, name, named := strings.Cut(text, "/")
	if !named {
		name = "*"
	}
	if _, err := path.Match(name, ""); err != nil || kind == "" || name == "" || strings.ContainsAny(kind, "*? ") {
		return Ignored{}, fmt.Errorf("%q: write KIND or KIND/NAME, where NAME may have *, as in ConfigMap/leader-*", text)
	}
	return Ignored{kind, name}, nil
}

// String returns what ParseIgnored reads.
func (i Ignored) String() string { return i.Kind + "/" + i.Name }

// matches reports whether an object is meant.
func (i Ignored) matches(ref cluster.Ref) bool {
	if !strings.EqualFold(i.Kind, ref.Kind) && !strings.EqualFold(i.Kind, ref.GroupKind().String()) {
		return false
	}
	ok, err := path.Match(i.Name, ref.Name)
	return ok && err == nil
}

// isIgnored reports whether an object is one of those that are ignored.
func isIgnored(ignored []Ignored, ref cluster.Ref) bool {
	return helmReleases.matches(ref) || slices.ContainsFunc(ignored, func(i Ignored) bool { return i.matches(ref) })
}
