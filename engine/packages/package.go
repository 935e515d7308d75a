package packages

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/signature"
)

// The kinds of this package.
var (
	Kind         = schema.GroupVersionKind{Group: "operetta.dev", Version: "v1alpha1", Kind: "Package"}
	RevisionKind = schema.GroupVersionKind{Group: "operetta.dev", Version: "v1alpha1", Kind: "PackageRevision"}
	OverlayKind  = schema.GroupVersionKind{Group: "operetta.dev", Version: "v1alpha1", Kind: "Overlay"}
)

// defaultRevisionHistory is how many revisions of a Package are kept if its spec does not say so.
const defaultRevisionHistory = 10

// A Spec is the spec of a Package. The CustomResourceDefinition describes each field.
type Spec struct {
	Source               Source         `json:"source"`
	Paused               bool           `json:"paused,omitempty"`
	Update               Update         `json:"update,omitempty"`
	ApprovedDigest       string         `json:"approvedDigest,omitempty"`
	DeletionPolicy       DeletionPolicy `json:"deletionPolicy,omitempty"`
	RevisionHistoryLimit *int           `json:"revisionHistoryLimit,omitempty"`
	Limits               Limits         `json:"limits"`
	// Canary says which resources get a changed content first; nil has all get it at once.
	Canary *CanarySpec `json:"canary,omitempty"`
	// RevisionPins says whether a resource may name the revision that it is reconciled with.
	RevisionPins RevisionPins `json:"revisionPins,omitempty"`
	// ServiceAccountName and ServiceAccountNamespace name the ServiceAccount as which the operator acts for the resources.
	ServiceAccountName      string `json:"serviceAccountName,omitempty"`
	ServiceAccountNamespace string `json:"serviceAccountNamespace,omitempty"`
}

// RevisionPins say whether a resource may name the revision that it is reconciled with.
type RevisionPins string

// The revision pins.
const (
	// RefusePins: the annotation has no effect. Otherwise, anyone who may write a resource could choose a version with a fault that a later
	// one has corrected.
	RefusePins RevisionPins = "Refuse"
	// allowPins: the annotation counts.
	allowPins RevisionPins = "Allow"
)

// Limits are how many objects of all resources a changed content may delete and recreate. One that is nil is none.
type Limits struct {
	MaxDelete   *int64 `json:"maxDelete,omitempty"`
	MaxRecreate *int64 `json:"maxRecreate,omitempty"`
}

// A Source says where the files of a Package are. Exactly one field is set.
type Source struct {
	// Inline has the files by their names.
	Inline    map[string]string   `json:"inline,omitempty"`
	ConfigMap *ConfigMapReference `json:"configMap,omitempty"`
	OCI       *OCIReference       `json:"oci,omitempty"`
}

// An OCIReference names a CUE module in a registry.
type OCIReference struct {
	// Reference has a tag, a digest, or both.
	Reference string `json:"reference"`
	// Digest pins the content.
	Digest string `json:"digest,omitempty"`
	// Path is the folder of the package in the module; "" is its root.
	Path string `json:"path,omitempty"`
	// PullSecret is the name of a Secret with credentials, in the namespace of the operator.
	PullSecret string `json:"pullSecret,omitempty"`
	// Verify says which signatures the module needs.
	Verify Verify `json:"verify,omitzero"`
}

// Verify says which signatures a module, and those that it depends on, need besides those that the operator demands.
type Verify struct {
	// Keys are public keys in PEM form, of which one has to have signed; without any, none has to.
	Keys []string `json:"keys,omitempty"`
}

// A ConfigMapReference names a ConfigMap whose data are the files.
type ConfigMapReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// An Update says who decides that a changed content is taken over.
type Update string

// The updates.
const (
	// Automatic: whatever passes its checks is taken over.
	Automatic Update = "Automatic"
	// Manual: what passes its checks waits for the approval of its digest.
	Manual Update = "Manual"
)

// A DeletionPolicy says what happens to a Package that somebody deletes while it has custom resources.
type DeletionPolicy string

// The deletion policies.
const (
	// Wait keeps serving until somebody has deleted all of them.
	Wait DeletionPolicy = "Wait"
	// Refuse is Wait, and an admission policy refuses the deletion.
	Refuse DeletionPolicy = "Refuse"
)

// A Package is a Package of the cluster.
type Package struct {
	Spec

	Name string
	// keys are those of Verify.
	keys signature.Keys
	// account is the one that sends the requests for its resources.
	account object.Account
	// object is the Package as it was read.
	object *unstructured.Unstructured
}

// Parse reads a Package. It errors if the spec is not what the CustomResourceDefinition describes, as
// that of a newer version may be.
func Parse(u *unstructured.Unstructured) (Package, error) {
	p := Package{Name: u.GetName(), object: u}
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err == nil {
		err = p.decode(spec)
	}
	if err == nil {
		err = p.Canary.check()
	}
	if err == nil && p.Source.OCI != nil {
		if p.keys, err = signature.ParseKeys(p.Source.OCI.Verify.Keys); err != nil {
			err = fmt.Errorf("source.oci.verify.keys: %w", err)
		}
	}
	if err != nil {
		return p, fmt.Errorf("package %s: reading the spec: %w", p.Name, err)
	}
	return p, nil
}

// decode reads the spec. Its errors name fields and quote no content, as files may have passwords.
func (p *Package) decode(spec map[string]any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(spec, &p.Spec, true)
	if err == nil || runtime.IsStrictDecodingError(err) {
		return err
	}
	// The converter says what is no value of a field, and not of which.
	text, failed := json.Marshal(spec)
	if failed != nil {
		return err
	}
	if of, is := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(text, &Spec{})); is && of.Field != "" {
		return fmt.Errorf("%s: %w", of.Field, err)
	}
	return err
}

// identity returns the Package without content. The UID prevents an apply from creating a Package that was deleted in the
// meantime.
func (p Package) identity() *unstructured.Unstructured {
	return cluster.Ref{GroupVersionKind: Kind, Name: p.Name}.Object(p.object.GetUID())
}

// deleted reports whether somebody has deleted the Package.
func (p Package) deleted() bool { return p.object.GetDeletionTimestamp() != nil }

// origin says where the files are from, in messages about two packages of one kind.
func (p Package) origin() string { return "Package " + p.Name }

// revisionLimit is how many revisions are kept, at least the one that is served.
func (p Package) revisionLimit() int {
	if p.RevisionHistoryLimit == nil {
		return defaultRevisionHistory
	}
	return max(1, *p.RevisionHistoryLimit)
}
