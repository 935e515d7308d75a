package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// A Desired is an object as it is applied.
type Desired struct {
	Component string
	Object    string
	Manifest  *unstructured.Unstructured
	// Digest is the digest of the manifest, and the value of its AppliedMark.
	Digest string
	Policy program.Policy
}

// Ref returns the object's identity.
func (d Desired) Ref() cluster.Ref { return cluster.RefOf(d.Manifest) }

// Stamp returns a rendered object with the engine's marks: namespace, owner
// label and annotations, the controller reference where one is allowed, and the
// digest. It errors when the manifest cannot be an object of that owner.
func Stamp(owner Owner, component string, object program.Object, scope cluster.Scope) (Desired, error) {
	d := Desired{Component: component, Object: object.Name, Policy: object.Policy}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object.Manifest)}
	if err := place(u, owner, scope); err != nil {
		return d, fmt.Errorf("object %s: %w", object.Name, err)
	}
	mark(u, owner, component+"/"+object.Name)
	// An orphaned object outlives its owner: a reference would delete it.
	if object.Policy.Delete != "orphan" {
		u.SetOwnerReferences([]metav1.OwnerReference{reference(owner)})
	}
	digest, err := digestOf(u.Object)
	if err != nil {
		return d, fmt.Errorf("object %s: %w", object.Name, err)
	}
	annotate(u, AppliedMark, digest)
	d.Manifest, d.Digest = u, digest
	return d, nil
}

// place sets the namespace. Garbage collection forbids a namespaced owner of
// objects elsewhere, and the engine does not track those by other means yet.
func place(u *unstructured.Unstructured, owner Owner, scope cluster.Scope) error {
	if scope == cluster.ClusterScoped {
		if owner.Namespace != "" {
			return fmt.Errorf("%s is cluster-scoped, and %s is not: not supported yet", u.GetKind(), owner.Kind)
		}
		u.SetNamespace("")
		return nil
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(owner.Namespace)
	}
	if owner.Namespace != "" && u.GetNamespace() != owner.Namespace {
		return fmt.Errorf("it is in namespace %s, and its owner in %s: not supported yet", u.GetNamespace(), owner.Namespace)
	}
	return nil
}

func mark(u *unstructured.Unstructured, owner Owner, component string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[OwnerMark] = owner.Label()
	u.SetLabels(labels)
	annotate(u, OwnerMark, owner.String())
	annotate(u, ComponentMark, component)
}

func annotate(u *unstructured.Unstructured, key, value string) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
}

func reference(owner Owner) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion:         owner.GroupVersion().String(),
		Kind:               owner.Kind,
		Name:               owner.Name,
		UID:                owner.UID,
		Controller:         &yes,
		BlockOwnerDeletion: &yes,
	}
}

// digestOf returns a short digest of a manifest; encoding/json sorts keys.
func digestOf(manifest map[string]any) (string, error) {
	b, err := json.Marshal(manifest)
	if err != nil {
		return "", fmt.Errorf("encoding the manifest: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}
