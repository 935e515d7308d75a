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

// A Patch is a temporary change of the objects that are rendered for one custom resource of its
// namespace.
type Patch struct {
	Namespace, Name string
	Generation      int64
	// Order is the order of application: lower numbers first, and the older patch first if
	// the numbers are equal.
	Order   int64
	Created time.Time
	Target  Target
	Changes []Change
	// Invalid is why the patch cannot be applied, or "".
	Invalid string
}

// A Target is the custom resource that a patch is for. The version of its API does not
// matter.
type Target struct {
	schema.GroupKind
	Name string
}

// A Change changes one object: by exactly one of StrategicMerge and Operations.
type Change struct {
	// Address is the object's component and its name there: component.object.
	Address string `json:"address"`
	// APIVersion and Kind are those of the object, or empty. If they are set and the object is
	// of another kind, the change is left out. The version of the API does not matter.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// StrategicMerge is a strategic merge patch, or a JSON merge patch (RFC 7386) for a kind
	// that is not built into Kubernetes.
	StrategicMerge map[string]any `json:"strategicMerge"`
	// Operations are those of a JSON patch (RFC 6902).
	Operations []Operation `json:"json6902"`
}

// patchSpec is the spec of a Patch as it is written.
type patchSpec struct {
	Target struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
	} `json:"target"`
	Order   int64    `json:"order"`
	Patches []Change `json:"patches"`
}

// Parse reads a Patch. If the Patch is invalid, the field Invalid says why. The schema of the
// kind rejects most mistakes, but an older Patch may have been written under an older schema.
func Parse(u *unstructured.Unstructured) Patch {
	p := Patch{
		Namespace: u.GetNamespace(), Name: u.GetName(), Generation: u.GetGeneration(), Created: u.GetCreationTimestamp().Time,
	}
	var s patchSpec
	text, err := json.Marshal(u.Object["spec"])
	if err == nil {
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber() // a float64 does not hold every int64
		err = numbers.Decode(&s)
	}
	if err != nil {
		p.Invalid = "its spec cannot be read: " + err.Error()
		return p
	}
	group := schema.FromAPIVersionAndKind(s.Target.APIVersion, s.Target.Kind)
	p.Order, p.Target = s.Order, Target{GroupKind: group.GroupKind(), Name: s.Target.Name}
	if u.Object[tooLargeField] != nil || len(text) > maxSpecSize {
		p.Invalid = specTooLarge()
		return p
	}
	seen := map[string]bool{}
	for _, c := range s.Patches {
		if why := c.invalid(); why != "" {
			p.Invalid = c.Address + ": " + why
		}
		if seen[c.Address] {
			p.Invalid = c.Address + ": there are two changes with this address"
		}
		seen[c.Address] = true
	}
	p.Changes = s.Patches
	return p
}

// invalid returns why a change is invalid for every object, or "".
func (c Change) invalid() string {
	if (c.StrategicMerge == nil) == (c.Operations == nil) {
		return "set exactly one of strategicMerge and json6902"
	}
	if (c.APIVersion == "") != (c.Kind == "") {
		return "set both apiVersion and kind of the object, or neither"
	}
	// The admission policy reads the group from it too, and must get the same group.
	if _, err := schema.ParseGroupVersion(c.APIVersion); err != nil {
		return "apiVersion must be a group and a version"
	}
	return ""
}

// Targets reports whether a patch is for the custom resource of this kind and name in its
// namespace.
func (p Patch) Targets(kind schema.GroupKind, name string) bool {
	return p.Target == Target{GroupKind: kind, Name: name}
}

// IsFor reports what Targets does of the Patch that an object is, without parsing it: all Patches of a namespace are
// looked at for each resource. It may be true of an object that is no valid Patch.
func IsFor(u *unstructured.Unstructured, kind schema.GroupKind, name string) bool {
	target, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "target")
	fields, ok := target.(map[string]any)
	if err != nil || !found || !ok {
		return false // as the target that Parse reads
	}
	version, _ := fields["apiVersion"].(string)
	of, _ := fields["kind"].(string)
	return fields["name"] == name && schema.FromAPIVersionAndKind(version, of).GroupKind() == kind
}

// sortedByOrder returns patches in the order in which they are applied.
func sortedByOrder(patches []Patch) []Patch {
	return slices.SortedStableFunc(slices.Values(patches), func(a, b Patch) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}
