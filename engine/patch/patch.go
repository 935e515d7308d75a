package patch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of the patches.
var Kind = schema.GroupVersionKind{Group: "operetta.dev", Version: "v1alpha1", Kind: "Patch"}

// A Patch is a temporary change of what is rendered for one custom resource of its
// namespace.
type Patch struct {
	Namespace, Name string
	Generation      int64
	// Order says when it is applied: lower numbers first, and of the same number the
	// older patch.
	Order   int64
	Created time.Time
	Target  Target
	Changes []Change
	// Invalid is why it cannot be read, or "".
	Invalid string
}

// A Target is the custom resource that a patch is about. In which version of its API
// it is named does not matter.
type Target struct {
	schema.GroupKind
	Name string
}

// A Change changes one object: by exactly one of StrategicMerge and Operations.
type Change struct {
	// Address is the object's component and its name there: component.object.
	Address string
	// APIVersion and Kind are of the object, if they are said: of another one nothing is
	// changed. In which version of its API it is named does not matter.
	APIVersion, Kind string
	// StrategicMerge is a strategic merge patch, or a JSON merge patch (RFC 7386) for
	// a kind that is not Kubernetes' own.
	StrategicMerge map[string]any
	// Operations are those of a JSON patch (RFC 6902).
	Operations []Operation
}

// spec is the spec of a Patch as it is written.
type spec struct {
	Target struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
	} `json:"target"`
	Order   int64    `json:"order"`
	Patches []change `json:"patches"`
}

// change is one of its changes.
type change struct {
	Address        string         `json:"address"`
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	StrategicMerge map[string]any `json:"strategicMerge"`
	JSON6902       []Operation    `json:"json6902"`
}

// Parse reads a Patch. What is wrong with it is in Invalid: the definition of the
// kind allows little of that, but older patches may have been written under another.
func Parse(u *unstructured.Unstructured) Patch {
	p := Patch{
		Namespace: u.GetNamespace(), Name: u.GetName(), Generation: u.GetGeneration(), Created: u.GetCreationTimestamp().Time,
	}
	var s spec
	text, err := json.Marshal(u.Object["spec"])
	if err == nil {
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber() // a large integer is no float
		err = numbers.Decode(&s)
	}
	if err != nil {
		p.Invalid = "its spec cannot be read: " + err.Error()
		return p
	}
	group := schema.FromAPIVersionAndKind(s.Target.APIVersion, s.Target.Kind)
	p.Order, p.Target = s.Order, Target{GroupKind: group.GroupKind(), Name: s.Target.Name}
	if u.Object[tooLarge] != nil || len(text) > maxSize {
		p.Invalid = sizeFault()
		return p
	}
	seen := map[string]bool{}
	for _, c := range s.Patches {
		if why := c.invalid(); why != "" {
			p.Invalid = c.Address + ": " + why
		}
		if seen[c.Address] {
			p.Invalid = c.Address + " is there twice"
		}
		seen[c.Address] = true
		p.Changes = append(p.Changes, Change{c.Address, c.APIVersion, c.Kind, c.StrategicMerge, c.JSON6902})
	}
	return p
}

// invalid returns what is wrong with a change, whatever it is about; "" is nothing.
func (c change) invalid() string {
	if (c.StrategicMerge == nil) == (c.JSON6902 == nil) {
		return "say exactly one of strategicMerge and json6902"
	}
	if (c.APIVersion == "") != (c.Kind == "") {
		return "say both apiVersion and kind of the object, or neither"
	}
	// A policy reads the group from it, and has to come to the same.
	if _, err := schema.ParseGroupVersion(c.APIVersion); err != nil {
		return "apiVersion is no group and version"
	}
	return ""
}

// Targets reports whether a patch is about a custom resource of its namespace.
func (p Patch) Targets(kind schema.GroupKind, name string) bool {
	return p.Target == Target{GroupKind: kind, Name: name}
}

// sorted returns patches in the order in which they are applied.
func sorted(patches []Patch) []Patch {
	return slices.SortedStableFunc(slices.Values(patches), func(a, b Patch) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}
