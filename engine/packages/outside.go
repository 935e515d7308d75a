package packages

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/object"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
)

// Outside reads the contents of Packages as an operator would, from files in place of a cluster.
type Outside struct {
	// ConfigMaps and Overlays are those that the files have. A ConfigMap without a namespace has any: kubectl chooses it.
	ConfigMaps, Overlays []*unstructured.Unstructured
	// Registries fetches modules with the credentials of the user, because the Secret of a Package is in its cluster.
	Registries Registries
}

// Read returns the content of a Package with the Overlays that hold for it.
func (o Outside) Read(ctx context.Context, p Package) (*source.Snapshot, error) {
	plain, err := o.plain(ctx, p)
	if err != nil {
		return nil, err
	}
	return unified(p, plain, o.Overlays)
}

// plain returns what the source of a Package has.
func (o Outside) plain(ctx context.Context, p Package) (*source.Snapshot, error) {
	files := p.Source.Inline
	switch of := p.Source; {
	case of.OCI != nil:
		return o.module(ctx, p)
	case of.ConfigMap != nil:
		u, err := o.configMap(*of.ConfigMap)
		if err != nil {
			return nil, err
		}
		if files, _, err = unstructured.NestedStringMap(u.Object, "data"); err != nil {
			return nil, err
		}
	}
	return source.Loader{Modules: within{ctx, o.Registries.Modules(nil)}}.Files(p.Name, p.origin(), ".", files)
}

// configMap returns the ConfigMap that a Package refers to.
func (o Outside) configMap(ref ConfigMapReference) (*unstructured.Unstructured, error) {
	at := slices.IndexFunc(o.ConfigMaps, func(u *unstructured.Unstructured) bool {
		return u.GetName() == ref.Name && (u.GetNamespace() == ref.Namespace || u.GetNamespace() == "")
	})
	if at < 0 {
		return nil, &MissingConfigMapError{types.NamespacedName(ref)}
	}
	return o.ConfigMaps[at], nil
}

// A MissingConfigMapError says that no file has the ConfigMap of a Package.
type MissingConfigMapError struct{ Name types.NamespacedName }

// Error names the ConfigMap.
func (e *MissingConfigMapError) Error() string {
	return fmt.Sprintf("the files have no ConfigMap %s, which has the content", e.Name)
}

// module fetches the module of a Package.
func (o Outside) module(ctx context.Context, p Package) (*source.Snapshot, error) {
	from := ociSource(p)
	from.Keys, from.OfUser = p.keys, true
	artifact, err := o.Registries.Fetch(ctx, from)
	if err != nil {
		return nil, err
	}
	return packageIn(ctx, p, artifact, o.Registries.Modules(p.keys))
}

// packageIn returns the package of a Package in a module that was fetched.
func packageIn(ctx context.Context, p Package, from *registry.Artifact, modules source.Modules) (*source.Snapshot, error) {
	dir := p.Source.OCI.Path
	if dir == "" {
		dir = "."
	}
	return source.Loader{Modules: within{ctx, modules}}.Module(p.Name, p.origin(), dir, from.Files)
}

// Account returns the ServiceAccount as which an operator in a namespace acts for the resources of a Package, or none.
func (p Package) Account(operatorNamespace string) (object.Account, error) {
	return accountOf(p.object, operatorNamespace)
}
