package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/signature"
	"operetta.dev/engine/source"
)

// packageFlags are the settings of `operetta run` about Packages of the cluster.
type packageFlags struct {
	fromCluster bool
	selector    string
	// pullSecretNamespace is where the Secrets with credentials for registries are; "" is the namespace of the pod.
	pullSecretNamespace string
	// insecure are registries that are reached by plain HTTP.
	insecure []string
	// signatures is the file that says which signatures contents need, or "".
	signatures string
}

// podNamespaceFile has the namespace of the pod that a process runs in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// options returns how Packages are served.
func (f packageFlags) options(selector labels.Selector, registries *registry.Client) controller.PackageOptions {
	namespace := f.pullSecretNamespace
	if namespace == "" {
		if data, err := os.ReadFile(podNamespaceFile); err == nil {
			namespace = strings.TrimSpace(string(data))
		}
	}
	return controller.PackageOptions{
		Selector: selector, PullSecretNamespace: namespace, Namespace: namespace,
		Registries: registries,
	}
}

// policy returns which signatures contents need; nil asks for none.
func (f packageFlags) policy() (*signature.Policy, error) {
	if f.signatures == "" {
		return nil, nil
	}
	_, out, err := readPolicy(f.signatures)
	return out, err
}

// readPolicy reads the file of --require-signatures.
func readPolicy(file string) ([]byte, *signature.Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--require-signatures: %w", err)
	}
	out, err := signature.ParsePolicy(text)
	if err != nil {
		return nil, nil, fmt.Errorf("--require-signatures: %s: %w", file, err)
	}
	return text, out, nil
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
	r, err := o.manager.ServePackages(objectExaminer{o}, o.flags.packages.options(selector, o.registries))
	if err != nil {
		return nil, err
	}
	if o.flags.options.WebhookAddress != "" {
		o.mu.Lock()
		o.begun = r.Begun.All()
		o.mu.Unlock()
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
func (e objectExaminer) InstallCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition, mayReplace func(context.Context, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, establishedTimeout)
	defer cancel()
	present, err := e.present(ctx, definition.Name)
	switch {
	case err != nil:
		return err
	case e.flags.crds == crdsLeave:
		return waitServed(ctx, e.config, definition)
	case present != nil:
		owner, ours := present.Labels[crd.PackageLabel]
		if !ours {
			return &packages.ForeignCRDError{Name: definition.Name}
		}
		if err := mayReplace(ctx, owner); err != nil {
			return err
		}
	}
	if err := e.install(ctx, definition); err != nil {
		return err
	}
	// Another operator may have installed its own meanwhile, which looked when there was none.
	if present, err = e.present(ctx, definition.Name); err != nil {
		return err
	}
	if present == nil {
		return fmt.Errorf("%s was deleted at once after it was installed", definition.Name)
	}
	return mayReplace(ctx, present.Labels[crd.PackageLabel])
}

// present returns the definition that the cluster has by a name, or nil. It errors if there is none and nobody is to install one.
func (e objectExaminer) present(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	client, err := apiextensions.NewForConfig(e.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	out, err := client.CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	switch missing := apierrors.IsNotFound(err); {
	case missing && e.flags.crds == crdsLeave:
		return nil, fmt.Errorf("%s is not installed, and with --crds=leave the operator does not install it: %w", name, err)
	case missing:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for %s: %w", name, err)
	}
	return out, nil
}

// AwaitCRD implements packages.Examiner. With --crds=leave it does not look for what the definition lacks: who decides does not either.
func (e objectExaminer) AwaitCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithTimeout(ctx, establishedTimeout)
	defer cancel()
	present, err := e.present(ctx, definition.Name)
	switch {
	case err != nil:
		return err
	case present == nil:
		return fmt.Errorf("%s is not installed yet; %s does that", definition.Name, e.decides())
	case e.flags.crds != crdsLeave:
		if lacking := crd.MissingField(present, definition); lacking != "" {
			return fmt.Errorf("%s lacks %s; %s installs it", definition.Name, lacking, e.decides())
		}
	}
	return waitServed(ctx, e.config, definition)
}

// decides names the process that installs the definitions of Packages, for one that does not.
func (e objectExaminer) decides() string {
	if e.flags.options.Shard.IsPrimary() {
		return "the process that leads"
	}
	return "shard 0"
}

// Defined implements packages.Examiner.
func (e objectExaminer) Defined(ctx context.Context, name string) ([]schema.GroupVersionKind, error) {
	client, err := apiextensions.NewForConfig(e.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	all, err := client.CustomResourceDefinitions().List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{crd.PackageLabel: name}).String()})
	if err != nil {
		return nil, fmt.Errorf("listing the definitions of Package %s: %w", name, err)
	}
	out := make([]schema.GroupVersionKind, len(all.Items))
	for i := range all.Items {
		out[i] = storedKind(&all.Items[i])
	}
	return out, nil
}
