package packages

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/signature"
	"operetta.dev/engine/source"
)

// A Candidate is a version of a package that has passed its checks.
type Candidate struct {
	Program  *program.Program
	CRD      *apiextensionsv1.CustomResourceDefinition
	Warnings fault.Faults
}

// An Examiner checks packages and installs their definitions.
type Examiner interface {
	// Examine checks a version of a package where it can do no harm, and compiles it. It errors with
	// fault.Faults if the package is wrong.
	Examine(ctx context.Context, s *source.Snapshot) (Candidate, error)
	// Slots returns how many contents it examines at a time.
	Slots() int
	// InstallCRD makes the cluster serve a definition. It errors with a ForeignCRDError if the definition
	// of the cluster is not that of a package. If it is that of another package, which its label names, it
	// is replaced unless mayReplace errors.
	InstallCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition, mayReplace func(ctx context.Context, owner string) error) error
	// AwaitCRD errors until the cluster serves a definition with all that this one has: another process installs it.
	AwaitCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error
	// Defined returns the kinds whose definitions have the label of a package. Only who may write
	// CustomResourceDefinitions can forge that.
	Defined(ctx context.Context, name string) ([]schema.GroupVersionKind, error)
}

// A Server runs the controllers of packages; controller.Manager is one.
type Server interface {
	// ServedBy returns where the files of the package that serves a kind are from, or "".
	ServedBy(kind schema.GroupKind) string
	// Serve begins the controller of a package.
	Serve(p *program.Program) error
	// ServeOutdated is Serve for an earlier version; fault says what is wrong with the present one, and c which resources
	// are reconciled with another one, if it is not nil.
	ServeOutdated(p *program.Program, fault string, c *Canary) error
	// Swap makes the controller of a package use another version of it, for all resources.
	Swap(ctx context.Context, was, p *program.Program) error
	// ReportOutdated says what is wrong with the present files of a package, or, with "", that nothing is.
	ReportOutdated(ctx context.Context, p *program.Program, fault string) error
	// Withdraw ends the controller of a package, and returns when none of its reconciles runs.
	Withdraw(ctx context.Context, p *program.Program) error
	// ReportBroken says that there is no version of a package that can be served.
	ReportBroken(origin, name, fault string)
	// ReportRepaired says that there is one, of a kind.
	ReportRepaired(origin, kind string)
	// Resources returns the custom resources of a package, from the cache of its controller.
	Resources(ctx context.Context, kind schema.GroupVersionKind) ([]Resource, error)
	// Remaining returns at most limit of the custom resources of a kind that the API server has; there are
	// none if it does not serve the kind.
	Remaining(ctx context.Context, kind schema.GroupVersionKind, limit int) ([]Resource, error)
}

// Versions tells the controllers of packages which resources have another version than the one that is served; controller.Manager
// does.
type Versions interface {
	// Canary makes the controller of a package reconcile some resources with another version; with nil, it ends that.
	Canary(ctx context.Context, p *program.Program, c *Canary) error
	// Pins says which versions resources of a kind may be pinned to, also before its controller begins.
	Pins(ctx context.Context, kind schema.GroupKind, pins Pins) error
	// Requeue has resources of a package reconciled, behind those that somebody has changed.
	Requeue(p *program.Program, resources []Resource) error
}

// Holds are on the kinds that a process which stands by has loaded for reviews: what it has followed may be out of date when it becomes the
// leader, and a resource must not go back to that.
type Holds interface {
	// Hold has no resource of a kind reconciled until Release is called, also by a process that leads. It comes before Serve.
	Hold(kind schema.GroupKind)
	// Release ends that. Withdraw does, too.
	Release(kind schema.GroupKind)
}

// A Resource is a custom resource of a package.
type Resource struct {
	types.NamespacedName

	UID    types.UID
	Labels map[string]string
	// Digest is the version of the package that reconciled it last, or "".
	Digest string
	// Ready and Failed are its conditions Ready and Stalled, Reason is that of Ready, and Changed is when Ready last changed.
	Ready, Failed bool
	Reason        string
	Changed       time.Time
	// Pin is the version that an annotation asks for, or "". It may be any text.
	Pin string
	// Paused says that a person has paused it, and Deleted that it is being deleted.
	Paused, Deleted bool
}

// ConfigMaps reads ConfigMaps, and watches those that Packages refer to.
type ConfigMaps interface {
	// Get returns a ConfigMap, or nil if there is none, and refers to it from now on, and to no other.
	Get(ctx context.Context, name string, ref ConfigMapReference) (*unstructured.Unstructured, error)
	// Forget ends the reference of a Package.
	Forget(name string)
}

// Registries fetches modules.
type Registries interface {
	source.Modules
	// Fetch returns what a source names. It errors with a registry.Error.
	Fetch(ctx context.Context, s registry.Source) (*registry.Artifact, error)
	// Modules returns the modules for one package; one of some keys has to have signed each, unless there are none.
	Modules(own signature.Keys) *registry.Modules
	// RecordsVerification reports whether it is noted with which signatures contents were accepted.
	RecordsVerification(own signature.Keys) bool
	// CheckVerified errors if an artifact that was verified before is none that is accepted now.
	CheckVerified(v registry.Verified, own signature.Keys) error
	// CheckUnsigned errors if files that an object of the cluster has are not accepted.
	CheckUnsigned() error
}

// Secrets reads the Secrets with the credentials for registries.
type Secrets interface {
	// PullSecret returns the credentials in a Secret of the operator's namespace.
	PullSecret(ctx context.Context, name string) ([]byte, error)
}

// A Recorder records events.
type Recorder interface {
	// Record records one event of an object.
	Record(u *unstructured.Unstructured, e rollout.Event)
}

// An Observer is notified of the states of Packages and their canaries, such as for metrics.
type Observer interface {
	// Package is called with the status and the reason of the condition Ready of a Package.
	Package(name, ready, reason string)
	// NoPackage is called when a Package is gone, or another process serves it.
	NoPackage(name string)
	// Canary is called with how many resources have the content of a canary of a Package, and how many of these are ready.
	Canary(name string, resources, ready int)
	// NoCanary is called when no canary of a Package is in progress.
	NoCanary(name string)
	// CanaryEnded is called with how a canary has ended.
	CanaryEnded(name, phase string)
}
