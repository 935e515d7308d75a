package main

import (
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/install"
)

// checkChart errors if a flag says what the release of a chart decides.
func (f *installFlags) checkChart(cmd *cobra.Command) error {
	if f.chart == "" {
		return nil
	}
	for _, name := range []string{"service-account", "leader-election-id", "operator-user", "output"} {
		if cmd.Flags().Changed(name) {
			return usageError{errors.New("--chart: it cannot be combined with --" + name)}
		}
	}
	return nil
}

// prepareChart makes the options those of the templates of a chart. It returns those of the defaults.
func (f *installFlags) prepareChart() install.Options {
	defaults := f.run
	if f.chart != "" {
		f.run, f.options = f.run.ForChart(), install.ChartRights(f.options)
	}
	return defaults
}

// chartFile returns the template that has the objects of a kind.
func chartFile(kind string) string {
	switch kind {
	case "CustomResourceDefinition":
		return "crds.yaml"
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return "policies.yaml"
	case "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return "rbac.yaml"
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return "webhooks.yaml"
	}
	return "manager.yaml"
}

// writeChart writes the chart into its folder. The namespace is that of the release, which Helm creates.
func (f *installFlags) writeChart(all func() ([]manifest, error), defaults install.Options) error {
	files, err := install.Documents(func(webhooks install.Certificates) ([]install.Document, error) {
		f.run.Webhooks = webhooks
		manifests, err := all()
		if err != nil {
			return nil, err
		}
		return chartDocuments(manifests)
	})
	if err != nil {
		return err
	}
	chart := install.Chart(files, defaults)
	if err := overwriteFiles(f.chart, chart); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}

// chartDocuments returns manifests as documents of a chart.
func chartDocuments(all []manifest) ([]install.Document, error) {
	var out []install.Document
	for _, m := range all {
		u := &unstructured.Unstructured{Object: m.object}
		if u.GetKind() == "Namespace" {
			continue
		}
		if u.GetKind() == "CustomResourceDefinition" {
			annotations := maps.Clone(u.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[install.KeepAnnotation] = "keep"
			u.SetAnnotations(annotations)
		}
		text, err := yamlOf(m.object)
		if err != nil {
			return nil, err
		}
		if u.GetKind() == "CustomResourceDefinition" && u.GetLabels()[crd.PackageLabel] == "" {
			text = install.OptionalDocument(text)
		}
		out = append(out, install.Document{ID: u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName(), File: chartFile(u.GetKind()), Text: text})
	}
	return out, nil
}
