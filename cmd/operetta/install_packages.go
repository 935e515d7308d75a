package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/source"
)

// maxInline is how many bytes the files of a Package have as JSON: the API server stores no object of more than about 1.5 megabytes, and
// a PackageRevision has the same files.
const maxInline = 1 << 20

// completePackages sets what follows from --as-packages, and errors if it contradicts another flag.
func (f *installFlags) completePackages(cmd *cobra.Command) error {
	if !f.asPackages {
		return nil
	}
	for _, name := range []string{"chart", "olm"} {
		if cmd.Flags().Changed(name) {
			return usageError{errors.New("--as-packages: --" + name + " installs no objects whose definition it has; apply the Packages afterwards")}
		}
	}
	f.options.PackageObjects = true
	_, err := f.packageLabels()
	return err
}

// noteObjects says what kubectl does with Packages.
func (f *installFlags) noteObjects(s streams, args []string) {
	if files, err := f.manifestsOf(args); err == nil && len(files.packages) > 0 {
		printLinef(s.err, "note: the Packages of files are not printed: apply the files after this")
	}
	if len(f.objects) > 0 {
		printLinef(s.err, "note: kubectl finds the kind Package only once its definition is there: where it is new, apply this twice")
	}
}

// packageLabels returns the labels by which the operator selects the Packages that are printed.
func (f *installFlags) packageLabels() (map[string]string, error) {
	parsed, err := metav1.ParseToLabelSelector(f.run.PackageSelector)
	if err != nil {
		return nil, usageError{fmt.Errorf("--package-selector: %w", err)}
	}
	out := maps.Clone(parsed.MatchLabels)
	for _, e := range parsed.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1 {
			if out == nil {
				out = map[string]string{}
			}
			out[e.Key] = e.Values[0]
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return nil, usageError{fmt.Errorf("--package-selector: %w", err)}
	}
	if !selector.Matches(labels.Set(out)) {
		return nil, usageError{fmt.Errorf("--package-selector %s: --as-packages gives the Packages the labels that it names, as in team=a, and it would not select them", f.run.PackageSelector)}
	}
	return out, nil
}

// packageObjects returns the Packages of folders.
func (f *installFlags) packageObjects(dirs []string) ([]manifest, error) {
	selected, err := f.packageLabels()
	if err != nil {
		return nil, err
	}
	all, err := readNamed(dirs, "as a Package has the name of its package")
	if err != nil {
		return nil, err
	}
	var out []manifest
	for _, s := range all {
		u, err := packageObject(s, f.accounts[s.Name()])
		if err != nil {
			return nil, err
		}
		if len(selected) > 0 {
			u.SetLabels(selected)
		}
		out = append(out, manifest{object: u.Object})
	}
	return out, nil
}

// packageObject returns the Package with the files of a package.
func packageObject(s *source.Snapshot, account object.Account) (*unstructured.Unstructured, error) {
	if wrong := validation.IsDNS1123Label(s.Name()); len(wrong) > 0 {
		return nil, fault.Faults{{Message: fmt.Sprintf("package %s: a Package cannot have this name: %s", s.Name(), strings.Join(wrong, "; ")), Hint: "rename the package"}}
	}
	const instead = "push the module with operetta push, and apply the source that it prints"
	files, err := s.Rooted()
	if err != nil {
		return nil, fault.Faults{{Message: err.Error(), Hint: instead}}
	}
	inline := map[string]any{}
	for name, text := range files {
		inline[name] = text
	}
	asJSON, err := json.Marshal(inline)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", s.Name(), err)
	}
	if len(asJSON) > maxInline {
		return nil, fault.Faults{{Message: fmt.Sprintf("package %s: it has %d bytes as JSON, and a Package holds %d", s.Name(), len(asJSON), maxInline), Hint: instead}}
	}
	spec := map[string]any{"source": map[string]any{"inline": inline}}
	if account != (object.Account{}) {
		spec["serviceAccountName"], spec["serviceAccountNamespace"] = account.Name, account.Namespace
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(packages.Kind)
	u.SetName(s.Name())
	return u, nil
}
