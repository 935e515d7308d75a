package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/importer"
	"operetta.dev/engine/scaffold"
	"operetta.dev/engine/source"
)

const importLong = `Make an operator package of objects that exist as YAML: what kustomize and helm template print, or
what kubectl has read from a cluster.

The package renders the same objects, and this is checked before anything is written: an import
that would lose or change something is refused with the reason. The objects are divided into
components: what the others depend on (definitions, namespaces, access, config), each workload
with its Services, budgets and autoscaler, and the rest. Replicas and images become fields of the
spec, with what was imported as their default. A test and a sample are made, too, and the CUE module
if there is none.

With --release, the name of the release is replaced by the name of the custom resource wherever it
is a separate word, so that a namespace can have several resources. Secrets are refused, because
the package would contain their content; --secrets imports them anyway.

With --api a CustomResourceDefinition among the objects, such as that of a kubebuilder project,
becomes the kind of the package: its schema is written as CUE, and the definition that the package
generates is compared with it. A single ResourceGraphDefinition of kro becomes a package, too: its
expressions are written as CUE, and what has no counterpart is refused.`

// importFlags are the settings of `operetta import`.
type importFlags struct {
	initFlags

	files   []string
	release string
	secrets bool
	api     string
	output  string
}

// imported is what an import has made, as JSON.
type imported struct {
	// Files are the files of the package, and of the module if one was made.
	Files      []string `json:"files"`
	Objects    int      `json:"objects"`
	Components int      `json:"components"`
	// Notes are what an author should know.
	Notes []string `json:"notes,omitempty"`
}

func newImport(s streams) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FOLDER -f FILE",
		Short: "Make a package of objects in YAML",
		Long:  importLong,
		Example: `  helm template shop ./chart | operetta import shop --release shop -f -
  kubectl kustomize ./overlays/production | operetta import shop -f -
  operetta import shop -f ./manifests
  operetta import memcached --api Memcached -f ./config/crd/bases
  operetta vet ./shop && operetta test ./shop`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0]) },
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "file or folder with the objects; - is the standard input; may be repeated")
	cmd.Flags().StringVar(&f.group, "group", "example.com", "API group of the custom resource")
	cmd.Flags().StringVar(&f.kind, "kind", "", "kind of the custom resource; by default the name with a capital letter")
	cmd.Flags().StringVar(&f.module, "module", "", "path of the CUE module, if one is made; by default the group and /operators")
	cmd.Flags().StringVar(&f.api, "api", "", "kind of a CustomResourceDefinition among the objects that becomes the kind of the package, with its schema")
	cmd.Flags().StringVar(&f.release, "release", "", "name in the objects that stands for the name of the custom resource")
	cmd.Flags().BoolVar(&f.secrets, "secrets", false, "import Secrets with their content, for everybody who may read the package")
	outputFlag(cmd, &f.output, formatText, formatJSON)
	return cmd
}

func (f importFlags) run(ctx context.Context, s streams, folder string) error {
	if len(f.files) == 0 {
		return usageError{errors.New("-f FILE is missing: what is to be imported")}
	}
	at, err := newPackageAt(folder)
	if err != nil {
		return err
	}
	p := scaffold.Package{Name: at.name, Group: f.group, Kind: cmp.Or(f.kind, scaffold.KindOf(at.name))}
	if err := p.Check(); err != nil {
		return usageError{err}
	}
	objects, err := f.objects(ctx, s)
	if err != nil {
		return err
	}
	result, err := importer.Import(ctx, objects, importer.Options{Package: p, Release: f.release, API: f.api, Secrets: f.secrets})
	if refused, ok := errors.AsType[*importer.RefusedError](err); ok {
		for _, reason := range refused.Reasons {
			printLinef(s.err, "%s", reason)
		}
		return fmt.Errorf("not imported: %s; nothing was written", count(len(objects), "object"))
	}
	if err != nil {
		return err
	}
	return f.writeImported(s, at, result)
}

// writeImported writes the package, and says what was made.
func (f importFlags) writeImported(s streams, at newPackage, result importer.Result) error {
	told := s
	if f.output == formatJSON {
		told.out = io.Discard
	}
	made, err := f.write(told, at, result.Files)
	if err != nil {
		return err
	}
	for _, note := range result.Notes {
		printLinef(s.err, "note: %s", note)
	}
	if f.output == formatJSON {
		return printJSON(s.out, imported{made, result.Objects, result.Components, result.Notes})
	}
	printLinef(s.out, "%s", nextOf(at.folder, result))
	return nil
}

// nextOf says what a package has, and what to do next.
func nextOf(folder string, result importer.Result) string {
	folder = asArgument(folder)
	if result.Objects == 0 {
		return fmt.Sprintf("a kind with its schema, and no component yet; next: write components, and operetta vet %s", folder)
	}
	next := fmt.Sprintf("%s in %s; next: operetta vet %s", count(result.Objects, "object"), count(result.Components, "component"), folder)
	if slices.ContainsFunc(result.Files, func(f scaffold.File) bool { return strings.HasSuffix(f.Path, source.TestSuffix) }) {
		next += " && operetta test " + folder
	}
	return next
}

// objects reads the objects of all files.
func (f importFlags) objects(ctx context.Context, s streams) ([]importer.Object, error) {
	var out []importer.Object
	for _, file := range f.files {
		all, err := manifestFiles(file)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			documents, err := readDocuments(ctx, one, s.in)
			if err != nil {
				return nil, err
			}
			for _, d := range documents {
				if isKustomization(d) {
					return nil, fault.Faults{{
						Position: d.position(), Message: "a kustomization is no object, but says how to make some",
						Hint: "run kubectl kustomize " + filepath.Dir(one) + " and import its output",
					}}
				}
				out = append(out, importer.Object{Manifest: d.object, At: d.position().String()})
			}
		}
	}
	return out, nil
}

// isKustomization reports whether a document is what kustomize reads. It need not have a kind if its file has the name.
func isKustomization(d document) bool {
	if kind, has := d.object["kind"]; has {
		return kind == "Kustomization" && strings.HasPrefix(fmt.Sprint(d.object["apiVersion"]), "kustomize.config.k8s.io/")
	}
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(d.file))
}

// manifestFiles returns a file, or the files of a folder that kubectl would read, sorted.
func manifestFiles(file string) ([]string, error) {
	if file == stdin {
		return []string{file}, nil
	}
	out, err := source.ManifestFiles(file)
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no file that ends in .yaml, .yml or .json", file)
	}
	return out, err
}
