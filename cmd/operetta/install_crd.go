package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
)

// installCRD applies a CustomResourceDefinition and waits until the API server serves it. It retries while the API
// server cannot be reached. It leaves the definition of a newer engine alone. It errors as the API server does about
// an invalid definition if stored objects could not be read any more, or resources of the namespaces would lose
// fields.
func installCRD(ctx context.Context, config *rest.Config, log logr.Logger, namespaces object.Namespaces, want *apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	crds := client.CustomResourceDefinitions()
	fields := fieldCheck{config, namespaces, log}
	// Another process may write the definition at any time, as may what notes in it who converts and whether it is established.
	changed := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retryOutage(ctx, config, log, func() error {
		return retry.OnError(definitionConflicts, changed, func() error { return writeCRD(ctx, crds, fields, want) })
	})
	if err != nil {
		return fmt.Errorf("installing %s: %w", want.Name, err)
	}
	if err := waitEstablished(ctx, crds, want.Name); err != nil {
		return err
	}
	return waitServed(ctx, config, want)
}

// writeCRD writes a definition, unless the present one is that of a newer engine. Whatever it decides holds for what it writes: it
// errors with Conflict or AlreadyExists if somebody else has written meanwhile.
func writeCRD(ctx context.Context, crds apiextensions.CustomResourceDefinitionInterface, fields fieldCheck, want *apiextensionsv1.CustomResourceDefinition) error {
	present, err := crds.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		present, err = createCRD(ctx, crds, want)
	}
	if err != nil {
		return err
	}
	if crd.IsNewer(present, want) {
		fields.log.Info("the definition is that of a newer engine, and stays", "definition", want.Name, "number", present.Annotations[crd.DefinitionsAnnotation], "own", want.Annotations[crd.DefinitionsAnnotation])
		return nil
	}
	if err := crd.CheckStored(present, want); err != nil {
		return err
	}
	if err := fields.check(ctx, present, want); err != nil {
		return err
	}
	if present, err = endConversion(ctx, crds, present, want); err != nil {
		return err
	}
	if present, err = ownByApply(ctx, crds, present); err != nil {
		return err
	}
	if crd.IsApplied(present, want, cluster.FieldManager) {
		return nil // an apply has the API server check the whole schema and each of its rules
	}
	over := want.DeepCopy()
	over.ResourceVersion = present.ResourceVersion
	// Server-side apply is used because client-side apply stores the object in an annotation, which is limited to 256 KiB.
	body, err := crd.JSON(over)
	if err != nil {
		return err
	}
	_, err = crds.Patch(ctx, want.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: cluster.FieldManager, Force: new(true)})
	return err
}

// makerPrefix begins the names of the managers that create definitions.
const makerPrefix = cluster.FieldManager + "-create-"

// createCRD creates a definition. It is an apply, because a role that names the definition allows no other creation. An apply has no
// precondition that there is none yet, so the manager is one that nobody else has who applies anything else, and it takes no field
// from others: it errors with Conflict if somebody has created another definition meanwhile. ownByApply hands the fields over.
func createCRD(ctx context.Context, crds apiextensions.CustomResourceDefinitionInterface, want *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	body, err := crd.JSON(want)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return crds.Patch(ctx, want.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: makerPrefix + hex.EncodeToString(sum[:8])})
}

// ownByApply makes what was created or patched count as applied: otherwise a later apply could not take away from it what the
// definition does not have any more.
func ownByApply(ctx context.Context, crds apiextensions.CustomResourceDefinitionInterface, present *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	for i := range present.ManagedFields {
		if m := &present.ManagedFields[i]; strings.HasPrefix(m.Manager, makerPrefix) {
			m.Manager, m.Operation = cluster.FieldManager, metav1.ManagedFieldsOperationUpdate
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(present, sets.New(cluster.FieldManager), cluster.FieldManager)
	if err != nil || patch == nil {
		return present, err
	}
	return crds.Patch(ctx, present.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: cluster.FieldManager})
}

// endConversion takes the webhook out of a definition that converts, if the one that is installed next does not. The apply
// alone would leave the part that the keeper of the certificates owns. It returns the present definition.
func endConversion(ctx context.Context, crds apiextensions.CustomResourceDefinitionInterface, present, next *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	converts := func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Conversion != nil && d.Spec.Conversion.Webhook != nil
	}
	if !converts(present) || converts(next) {
		return present, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": present.ResourceVersion}, "spec": map[string]any{
		"conversion": map[string]any{"strategy": apiextensionsv1.NoneConverter, "webhook": nil},
		"versions":   next.Spec.Versions, // at once: nobody reads one version for another one meanwhile
	}})
	if err != nil {
		return nil, err
	}
	return crds.Patch(ctx, next.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: cluster.FieldManager})
}

// A namesTakenError says that another definition of the group has a name of a definition, such as a short one.
type namesTakenError struct{ message string }

// Error returns what the API server says.
func (e *namesTakenError) Error() string { return e.message }

// waitEstablished waits until a CustomResourceDefinition has the condition Established. It errors
// if its names are not accepted.
func waitEstablished(ctx context.Context, crds apiextensions.CustomResourceDefinitionInterface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, establishedPoll, establishedTimeout, true, func(ctx context.Context) (bool, error) {
		got, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, ignoreErrors(err, unreachable)
		}
		if c := apihelpers.FindCRDCondition(got, apiextensionsv1.NamesAccepted); c != nil && c.Status == apiextensionsv1.ConditionFalse {
			return false, &namesTakenError{c.Message}
		}
		return apihelpers.IsCRDConditionTrue(got, apiextensionsv1.Established), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be established: %w", name, err)
	}
	return nil
}

// waitServed waits until discovery lists the served versions of a CustomResourceDefinition. The
// API server lists them a moment after the definition is established. A client that asks for the
// kind earlier is told that there is none, and a watch retries only after ten seconds.
func waitServed(ctx context.Context, config *rest.Config, want *apiextensionsv1.CustomResourceDefinition) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	var versions []string
	for _, v := range want.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, establishedPoll, establishedTimeout, true, func(context.Context) (bool, error) {
		ok, err := discovered(client, want.Spec.Group, versions, want.Spec.Names.Plural)
		return ok, ignoreErrors(err, apierrors.IsNotFound, unreachable)
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be served in %s: %w", want.Name, strings.Join(versions, ", "), err)
	}
	return nil
}

// discovered reports whether discovery lists a resource in some versions: in the aggregated list, which clients ask for first
// and which is updated after the lists of versions.
func discovered(client *discovery.DiscoveryClient, group string, versions []string, resource string) (bool, error) {
	_, aggregated, _, err := client.GroupsAndMaybeResources()
	if err != nil {
		return false, err
	}
	for _, v := range versions {
		version := schema.GroupVersion{Group: group, Version: v}
		list := aggregated[version]
		if aggregated == nil { // an old API server has no aggregated discovery
			if list, err = client.ServerResourcesForGroupVersion(version.String()); err != nil {
				return false, err
			}
		}
		if !listsResource(list, resource) {
			return false, nil
		}
	}
	return true, nil
}

// listsResource reports whether a list has a resource with that plural name.
func listsResource(list *metav1.APIResourceList, plural string) bool {
	return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
}

// ignoreErrors returns nil if one of the functions recognizes the error, and else the error.
func ignoreErrors(err error, kinds ...func(error) bool) error {
	if slices.ContainsFunc(kinds, func(is func(error) bool) bool { return is(err) }) {
		return nil
	}
	return err
}
