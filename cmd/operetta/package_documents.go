package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/rbac"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// A manifestFile is what a file says that roles follow from.
type manifestFile struct {
	// scopes and plurals are those of the kinds that it defines.
	scopes  vet.Scopes
	plurals rbac.Plurals
	// packages are its Packages, and from has what their contents are made of.
	packages []packageDocument
	from     packages.Outside
}

// A packageDocument is a Package in a file.
type packageDocument struct {
	packages.Package

	at fault.Position
}

// isFile reports whether an argument names a file with Packages, and not folders: the standard input, a file or a pipe, and what
// does not exist and has the name of a manifest.
func isFile(arg string) bool {
	if arg == stdin {
		return true
	}
	if info, err := os.Stat(arg); err == nil {
		return !info.IsDir()
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}

// definedBy returns a file with some definitions.
func definedBy(definitions []map[string]any) manifestFile {
	out := manifestFile{scopes: vet.Scopes{}, plurals: rbac.Plurals{}}
	for _, definition := range definitions {
		kind, scope, _ := cluster.DefinedBy(definition)
		out.scopes[kind] = scope
		out.plurals[kind], _, _ = unstructured.NestedString(definition, "spec", "names", "plural")
	}
	return out
}

// readManifestFile reads a file.
func readManifestFile(ctx context.Context, in io.Reader, name string) (manifestFile, error) {
	all, err := readDocuments(ctx, name, in)
	if err != nil {
		return manifestFile{}, err
	}
	out := definedBy(definitionsIn(all))
	for _, d := range all {
		if err := out.add(d); err != nil {
			return out, err
		}
	}
	return out, nil
}

// add adds a Package, or what one is made of.
func (m *manifestFile) add(d document) error {
	u := d.resource()
	is := func(kind schema.GroupVersionKind) bool { return u.GroupVersionKind().GroupKind() == kind.GroupKind() }
	wrong := func(err error) error {
		return fault.Faults{{Position: d.position(), Message: err.Error()}}
	}
	switch {
	case is(packages.Kind) && u.GroupVersionKind() != packages.Kind:
		return wrong(fmt.Errorf("the version %s of Package is not known, but %s", u.GroupVersionKind().Version, packages.Kind.Version))
	case is(packages.Kind):
		p, err := packages.Parse(u)
		if p.Name == "" {
			err = errors.New("the Package has no metadata.name")
		}
		if err != nil {
			return wrong(err)
		}
		m.packages = append(m.packages, packageDocument{p, d.position()})
	case is(packages.OverlayKind):
		m.from.Overlays = append(m.from.Overlays, u)
	case is(schema.GroupVersionKind{Kind: "ConfigMap"}):
		m.from.ConfigMaps = append(m.from.ConfigMaps, u)
	}
	return nil
}

// with returns what two files say together. It errors if both have a Package of one name.
func (m manifestFile) with(other manifestFile) (manifestFile, error) {
	out := manifestFile{scopes: vet.Scopes{}, plurals: rbac.Plurals{}}
	for _, of := range []manifestFile{m, other} {
		maps.Copy(out.scopes, of.scopes)
		maps.Copy(out.plurals, of.plurals)
	}
	out.from.ConfigMaps = slices.Concat(m.from.ConfigMaps, other.from.ConfigMaps)
	out.from.Overlays = slices.Concat(m.from.Overlays, other.from.Overlays)
	out.packages = slices.Concat(m.packages, other.packages)
	seen := map[string]fault.Position{}
	for _, p := range out.packages {
		if first, twice := seen[p.Name]; twice {
			return out, fault.Faults{{Position: p.at, Message: fmt.Sprintf("the Package %s is there twice; the first is at %s", p.Name, first)}}
		}
		seen[p.Name] = p.at
	}
	return out, nil
}

// subjects returns the Packages to examine.
func (m manifestFile) subjects() []subject {
	from := m.from
	from.Registries = registry.New(registry.Options{})
	out := make([]subject, len(m.packages))
	for i, p := range m.packages {
		out[i] = subject{p.shown(), func(ctx context.Context) (*source.Snapshot, error) {
			snapshot, err := from.Read(ctx, p.Package)
			if err != nil {
				return nil, p.fault(err)
			}
			return snapshot.WithDisplayPrefix(p.shown() + "/"), nil
		}}
	}
	return out
}

// shown is how messages name the Package, and the folder of its files.
func (p packageDocument) shown() string { return "Package/" + p.Name }

// fault returns why the content of the Package cannot be read.
func (p packageDocument) fault(err error) error {
	if placed := placedFault(err); placed != nil {
		if _, overlay := errors.AsType[*source.OverlayError](err); !overlay {
			placed[0].Position.File = p.shown() + "/" + placed[0].Position.File
		}
		return placed
	}
	out := fault.Fault{Position: p.at, Message: fmt.Sprintf("package %s: %v", p.Name, err)}
	switch _, missing := errors.AsType[*packages.MissingConfigMapError](err); {
	case missing:
		out.Hint = "give the file with the ConfigMap with -f, too"
	case errors.Is(err, source.ErrNoFiles):
		out.Message = fmt.Sprintf("package %s: the source has no CUE files", p.Name)
	}
	return fault.Faults{out}
}

// readFiles reads the files of -f and among the arguments, each once.
func (f *rbacFlags) readFiles(ctx context.Context, in io.Reader, args []string) error {
	if f.read == nil {
		f.read = map[string]manifestFile{}
	}
	for i, name := range slices.Concat(f.files, filesAmong(args)) {
		file, known := f.read[name] // the standard input and pipes can be read once
		if !known {
			var err error
			if file, err = readManifestFile(ctx, in, name); err != nil {
				return err
			}
			f.read[name] = file
		}
		if i >= len(f.files) && len(file.packages) == 0 {
			return usageError{fmt.Errorf("%s: there is no Package in this file; files with definitions of kinds are given with -f", shownName(name))}
		}
		f.options.PackageObjects = f.options.PackageObjects || len(file.packages) > 0
	}
	return nil
}

// filesAmong returns the arguments that are files.
func filesAmong(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isFile(arg) })
}

// manifestsOf returns what the files of -f and among the arguments say, which have been read, and before that the definitions in the
// modules of the folders among the arguments.
func (f *rbacFlags) manifestsOf(args []string) (manifestFile, error) {
	dirs, err := f.folders(args)
	if err != nil {
		return manifestFile{}, err
	}
	beside, err := vet.ModuleDefinitions(dirs...)
	if err != nil {
		return manifestFile{}, err
	}
	out := definedBy(beside)
	names := slices.Concat(f.files, filesAmong(args))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if out, err = out.with(f.read[name]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// subjects returns the packages that the arguments name, and the Packages in files.
func (f *rbacFlags) subjects(args []string) ([]subject, error) {
	dirs, err := f.folders(args)
	if err != nil {
		return nil, err
	}
	files, err := f.manifestsOf(args)
	return append(inFolders(dirs), files.subjects()...), err
}

// actsAs returns as whom the operator acts for packages: as the flags say, and as the Packages in files say.
func (f *rbacFlags) actsAs(files manifestFile) (impersonations, error) {
	out := impersonations{}
	maps.Copy(out, f.accounts)
	for _, p := range files.packages {
		account, err := p.Account(f.options.OperatorNamespace)
		if err != nil {
			return nil, fault.Faults{{Position: p.at, Message: err.Error()}}
		}
		if flag, has := f.accounts[p.Name]; has && flag != account {
			return nil, usageError{fmt.Errorf("--impersonate %s=%s: the Package says it itself, and its spec.serviceAccountName is %q", p.Name, flag, p.ServiceAccountName)}
		}
		if p.ServiceAccountName != "" {
			out[p.Name] = account
		}
	}
	return out, nil
}

// takenOf returns the options of an operator that serves the Packages as well: it reads their ConfigMaps and Secrets itself.
func (m manifestFile) takenOf(o rbac.Options) rbac.Options {
	o.PullSecrets = slices.Clone(o.PullSecrets)
	for _, p := range m.packages {
		if ref := p.Source.ConfigMap; ref != nil {
			o.SourceConfigMaps = append(o.SourceConfigMaps, types.NamespacedName(*ref))
		}
		if oci := p.Source.OCI; oci != nil && oci.PullSecret != "" && !slices.Contains(o.PullSecrets, oci.PullSecret) {
			o.PullSecrets = append(o.PullSecrets, oci.PullSecret)
		}
	}
	return o
}
