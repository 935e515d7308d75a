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

// ParseNamespaces returns the namespaces with the given names. It errors if a name is invalid or occurs twice: a
// mistake must not make an operator serve more or fewer namespaces than was meant.
func ParseNamespaces(names []string) (Namespaces, error) {
	var out Namespaces
	for _, name := range names {
		switch wrong := validation.ValidateNamespaceName(name, false); {
		case name == "":
			return nil, errors.New("the name of a namespace is empty")
		case len(wrong) > 0:
			return nil, fmt.Errorf("%q is not the name of a namespace: %s", name, wrong[0])
		case slices.Contains(out, name):
			return nil, fmt.Errorf("the namespace %s occurs twice", name)
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// All reports whether nothing is restricted.
func (n Namespaces) All() bool { return len(n) == 0 }

// Has reports whether a namespace is one of them.
func (n Namespaces) Has(name string) bool { return n.All() || slices.Contains(n, name) }

// Lists returns the namespaces to list in order to see everything; "" stands for the whole cluster.
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

// Name returns a name for an object that belongs to all of the namespaces; different lists have different names. It
// is the name of the namespace if there is only one, and "" for all. The name of a namespace has no dot, so no
// namespace has the name of a list.
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
