package main

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/source"
)

// packageFlags are the settings of `operetta run` about Packages of the cluster.
type packageFlags struct {
	fromCluster bool
	selector    string
}

// check errors if the flags contradict each other. It returns the selector.
func (f packageFlags) check() (labels.Selector, error) {
	if f.selector != "" && !f.fromCluster {
		return nil, usageError{errors.New("--package-selector: it needs --packages-from-cluster")}
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, usageError{fmt.Errorf("--package-selector: %w", err)}
	}
	return selector, nil
}

// servePackages makes the manager serve Packages of the cluster, and returns a channel that is closed
// once each that exists at the start has been tried; nil without --packages-from-cluster.
func (o *operator) servePackages() (<-chan struct{}, error) {
	if !o.flags.packages.fromCluster {
		return nil, nil
	}
	selector, err := o.flags.packages.check()
	if err != nil {
		return nil, err
	}
	r, err := o.manager.ServePackages(objectExaminer{o}, selector)
	if err != nil {
		return nil, err
	}
	return r.Loaded(), nil
}

// objectExaminer examines Packages, and installs their definitions.
type objectExaminer struct{ *operator }

var _ packages.Examiner = objectExaminer{}

// Examine implements packages.Examiner.
func (e objectExaminer) Examine(ctx context.Context, s *source.Snapshot) (packages.Candidate, error) {
	select {
	case <-e.foldersTried:
	case <-ctx.Done():
		return packages.Candidate{}, ctx.Err()
	}
	checked, err := e.examiner.checkAndCompile(ctx, s, examineAll)
	return packages.Candidate{Program: checked.program, CRD: checked.crd, Warnings: checked.warnings}, err
}

// Slots implements packages.Examiner.
func (e objectExaminer) Slots() int { return cap(e.examiner.slots) }

// InstallCRD implements packages.Examiner. With --crds=leave it looks whether the definition is there.
func (e objectExaminer) InstallCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithTimeout(ctx, establishedTimeout)
	defer cancel()
	client, err := apiextensions.NewForConfig(e.config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	present, err := client.CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
	switch missing := apierrors.IsNotFound(err); {
	case missing && e.flags.crds == crdsLeave:
		return fmt.Errorf("%s is not installed, and with --crds=leave the operator does not install it: %w", definition.Name, err)
	case missing:
	case err != nil:
		return fmt.Errorf("looking for %s: %w", definition.Name, err)
	case e.flags.crds == crdsLeave:
		return waitServed(ctx, e.config, definition)
	default:
		if _, ours := present.Labels[crd.PackageLabel]; !ours {
			return &packages.ForeignCRDError{Name: definition.Name}
		}
	}
	return installCRD(ctx, e.config, e.log, definition)
}
