package reconcile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxLayer is how many bytes a layer of configuration may have once its aliases are expanded: as many as a
// ConfigMap may have.
const maxLayer = 1 << 20

// checkExpandedSize errors if a YAML text has more than maxLayer bytes once its aliases are expanded, or if it
// is no YAML. The library that decodes it counts nodes, not bytes: a long text with a short alias becomes
// gigabytes, and the one who writes the annotation of a resource could end the process for everybody.
func checkExpandedSize(text string) error {
	if !strings.Contains(text, "*") {
		return nil // it has no alias, and the API server limits its length
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return err
	}
	if (expandedSizes{}).of(&root) > maxLayer {
		return fmt.Errorf("it has more than %d bytes once its aliases are expanded", maxLayer)
	}
	return nil
}

// expandedSizes has the sizes of the nodes that aliases stand for. Each is measured once: aliases of aliases
// are exponentially many.
type expandedSizes map[*yaml.Node]int

// of returns how many bytes a node has at least, and not much more than maxLayer. A node that contains
// itself is too large.
func (s expandedSizes) of(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return s.of(n.Alias)
	}
	if known, ok := s[n]; ok {
		return known
	}
	if n.Anchor != "" {
		s[n] = maxLayer + 1 // as long as it is being measured
	}
	size := 1 + len(n.Value)
	for _, child := range n.Content {
		size = min(size+s.of(child), maxLayer+1)
	}
	if n.Anchor != "" {
		s[n] = size
	}
	return size
}
