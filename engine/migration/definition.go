package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"operetta.dev/engine/crd"
)

// Clients reach the cluster of a migration.
type Clients struct {
	Definitions apiextensions.CustomResourceDefinitionInterface
	Objects     metadata.Interface
}

// A Migration stores the objects of one definition anew.
type Migration struct {
	clients Clients
	// definition is what was read at the beginning.
	definition *apiextensionsv1.CustomResourceDefinition
	resource   schema.GroupVersionResource
	// Progress is called with how many objects are done, of how many; it may be nil.
	Progress func(done, all int)
}

// A RefusedError says why the objects of a definition cannot be migrated.
type RefusedError struct{ Definition, Why string }

// Error names the definition.
func (e *RefusedError) Error() string { return e.Definition + ": " + e.Why }

// Read reads a definition. It errors with a RefusedError if its objects would not be read as what they are.
func Read(ctx context.Context, clients Clients, name string) (*Migration, error) {
	definition, err := clients.Definitions.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the definition: %w", err)
	}
	if why := unconvertible(definition); why != "" {
		return nil, &RefusedError{name, why}
	}
	return &Migration{
		clients: clients, definition: definition,
		resource: schema.GroupVersionResource{Group: definition.Spec.Group, Version: crd.StorageVersion(definition), Resource: definition.Spec.Names.Plural},
	}, nil
}

// Storage returns the version in which objects are stored from now on.
func (m *Migration) Storage() string { return m.resource.Version }

// Old returns the other versions in which objects may be stored.
func (m *Migration) Old() []string {
	return slices.DeleteFunc(slices.Clone(m.definition.Status.StoredVersions), func(v string) bool { return v == m.Storage() })
}

// unconvertible returns why the objects of a definition cannot be stored anew, or "".
func unconvertible(d *apiextensionsv1.CustomResourceDefinition) string {
	storage := versionOf(d, crd.StorageVersion(d))
	if storage == nil || !storage.Served {
		return "the storage version is not served, so no client can write in it"
	}
	converts := d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	if converts && (d.Spec.Conversion.Webhook == nil || d.Spec.Conversion.Webhook.ClientConfig == nil) {
		return "its conversion has no webhook"
	}
	for _, stored := range d.Status.StoredVersions {
		old := versionOf(d, stored)
		switch {
		case stored == storage.Name:
		case old == nil:
			return fmt.Sprintf("objects may be stored in version %s, which it does not have", stored)
		case converts:
		case !equality.Semantic.DeepEqual(old.Schema, storage.Schema):
			return fmt.Sprintf("objects may be stored in version %s, and no webhook converts them to %s: the API server would drop what that version does not have; run the operator with webhooks", stored, storage.Name)
		}
	}
	return ""
}

// versionOf returns a version of a definition, or nil.
func versionOf(d *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == name {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}

// mayFinish errors if the user may not write the status of the definition: nothing is written then.
func (m *Migration) mayFinish(ctx context.Context) error {
	_, err := m.clients.Definitions.UpdateStatus(ctx, m.definition, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("removing versions from status.storedVersions of %s: %w", m.definition.Name, err)
	}
	return nil
}

// ErrChanged says that a definition has changed since its migration began, so that objects may have been stored in any version
// meanwhile.
var ErrChanged = errors.New("the definition has changed meanwhile, and status.storedVersions is as it was; begin anew")

// finishTries is how often the status of a definition is written at most, which others may be writing as well.
const finishTries = 10

// finish says in the definition that only the storage version is stored. It errors with ErrChanged if the definition is not
// the one that was read: somebody may have let another version be stored, and this one again.
func (m *Migration) finish(ctx context.Context) error {
	var err error
	for range finishTries {
		var now *apiextensionsv1.CustomResourceDefinition
		if now, err = m.clients.Definitions.Get(ctx, m.definition.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading the definition: %w", err)
		}
		if now.UID != m.definition.UID || now.Generation != m.definition.Generation || !containsAll(m.definition.Status.StoredVersions, now.Status.StoredVersions) {
			return fmt.Errorf("%s: %w", m.definition.Name, ErrChanged)
		}
		if slices.Equal(now.Status.StoredVersions, []string{m.Storage()}) {
			return nil // somebody else was faster
		}
		now.Status.StoredVersions = []string{m.Storage()}
		if _, err = m.clients.Definitions.UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager}); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("removing %s from status.storedVersions of %s: %w", strings.Join(m.Old(), ", "), m.definition.Name, err)
	}
	return nil
}

// containsAll reports whether a list has all elements of another one.
func containsAll(list, of []string) bool {
	return !slices.ContainsFunc(of, func(one string) bool { return !slices.Contains(list, one) })
}
