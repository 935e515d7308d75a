package object

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Namespaces are those that something is restricted to, in order; nil is all.
type Namespaces []string

// ParseNamespaces returns the namespaces of some names. It errors if there is none of a name, or a name is there twice:
// whoever writes a wrong one must not serve more, or less, than they mean.
func ParseNamespaces(names []string) (Namespaces, error) {
	var out Namespaces
	for _, name := range names {
		switch wrong := validation.ValidateNamespaceName(name, false); {
		case name == "":
			return nil, errors.New("the name of a namespace is empty")
		case len(wrong) > 0:
			return nil, fmt.Errorf("%q is not the name of a namespace: %s", name, wrong[0])
		case slices.Contains(out, name):
			return nil, fmt.Errorf("the namespace %s is there twice", name)
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// OneNamespace returns the namespace of a name, or all for "".
func OneNamespace(name string) Namespaces {
	if name == "" {
		return nil
	}
	return Namespaces{name}
}

// All reports whether nothing is restricted.
func (n Namespaces) All() bool { return len(n) == 0 }

// Has reports whether a namespace is one of them.
func (n Namespaces) Has(name string) bool { return n.All() || slices.Contains(n, name) }

// Lists returns the namespaces in which somebody lists who wants everything: "" stands for all of the cluster.
func (n Namespaces) Lists() []string {
	if n.All() {
		return []string{""}
	}
	return n
}

// Only returns the namespace if there is one, and else "".
func (n Namespaces) Only() string {
	if len(n) == 1 {
		return n[0]
	}
	return ""
}

// maxName is how long the name of several namespaces is at most: an object has it as a part of its own name.
const maxName = 100

// Name returns a name for what belongs to them all, of which each of several lists has another one. It is that of the
// namespace if there is one, and "" for all. The dot is in no name of a namespace.
func (n Namespaces) Name() string {
	name := strings.Join(n, ".")
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	const bytes = 8 // enough to tell the lists of one cluster apart
	return fmt.Sprintf("%s.and-%d-more.%s", n[0], len(n)-1, hex.EncodeToString(sum[:bytes]))
}

// String returns the names as flags have them.
func (n Namespaces) String() string { return strings.Join(n, ",") }
