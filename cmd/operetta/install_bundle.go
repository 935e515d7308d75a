package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/install"
)

// bundleFlags are the settings of a bundle for OLM.
type bundleFlags struct {
	// folder gets the bundle, or is "".
	folder string
	// version is that of the operator with its packages.
	version string
}

// bundleChannel is where a catalog offers the operator unless its own files say otherwise.
const bundleChannel = "stable"

func (f *bundleFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.folder, "olm", "", "write a bundle for the Operator Lifecycle Manager into this folder and print nothing")
	cmd.Flags().StringVar(&f.version, "olm-version", "0.1.0", "version of the bundle")
}

// check errors if the flags ask for what OLM does not install.
func (f *bundleFlags) check(cmd *cobra.Command, webhooks install.Certificates) error {
	if f.folder == "" {
		if cmd.Flags().Changed("olm-version") {
			return usageError{errors.New("--olm-version: it is the version of the bundle that --olm writes")}
		}
		return nil
	}
	if v := "v" + f.version; semver.Canonical(v) != v {
		return usageError{fmt.Errorf("--olm-version %q: it is not a version such as 0.1.0", f.version)}
	}
	for _, name := range []string{"chart", "operator-user", "output", "shards", "impersonate"} {
		if cmd.Flags().Changed(name) {
			return usageError{errors.New("--olm: it cannot be combined with --" + name)}
		}
	}
	if webhooks == install.CertManager {
		return usageError{errors.New("--olm: OLM makes the certificate of webhooks itself: write --webhooks without cert-manager")}
	}
	return nil
}

// completeBundle sets what follows from the flags: OLM applies the definitions, and only one of both may.
func (f *installFlags) completeBundle() {
	if f.bundle.folder != "" && f.crds == "" {
		f.crds = crdsLeave
	}
	if f.bundle.folder != "" && f.run.Webhooks == install.Operator {
		f.run.Webhooks = install.OLM
	}
}

// writeBundle writes what is installed as a bundle, and says what of it OLM does not install.
func (f *installFlags) writeBundle(ctx context.Context, s streams, args []string, printed []manifest) error {
	b := install.Bundle{Name: f.options.ServiceAccount, Version: f.bundle.version, Channel: bundleChannel}
	var err error
	if b.Examples, err = f.examples(ctx, args); err != nil {
		return err
	}
	all := make([]*unstructured.Unstructured, len(printed))
	for i, m := range printed {
		all[i] = &unstructured.Unstructured{Object: m.object}
	}
	files, err := b.Files(all, f.run, yamlOf)
	if err != nil {
		return err
	}
	if err := onlyThese(filepath.Join(f.bundle.folder, install.BundleManifests), files); err != nil {
		return err
	}
	if err := overwriteFiles(f.bundle.folder, files); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if _, has := files[install.BundlePolicies]; has {
		printLinef(s.err, "OLM installs no ValidatingAdmissionPolicies: apply %s first. It is for an operator in namespace %s.", filepath.Join(f.bundle.folder, install.BundlePolicies), f.options.OperatorNamespace)
	}
	return nil
}

// examples returns a custom resource of each package for which one can be made up.
func (f *installFlags) examples(ctx context.Context, args []string) ([]map[string]any, error) {
	all, err := f.subjects(args)
	if err != nil {
		return nil, err
	}
	found, err := examineSubjects(ctx, all, examineSample)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, one := range found {
		if one.Unmade == "" {
			one.Sample["metadata"] = map[string]any{"name": "example"}
			out = append(out, one.Sample)
		}
	}
	return out, nil
}

// onlyThese errors if the manifests of an earlier bundle are in its folder that this one does not have: OLM would install them.
func onlyThese(folder string, files map[string]string) error {
	there, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	for _, entry := range there {
		if _, has := files[install.BundleManifests+"/"+entry.Name()]; !has {
			return fmt.Errorf("%s is not part of the bundle, and OLM would install it: delete it, or name another folder", filepath.Join(folder, entry.Name()))
		}
	}
	return nil
}

// overwriteFiles writes files into a folder, by their names with slashes.
func overwriteFiles(folder string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}
