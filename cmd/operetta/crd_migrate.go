package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/metadata"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/migration"
)

const migrateLong = `Rewrite all resources of a kind in the storage version, and remove the old versions from
status.storedVersions of the CustomResourceDefinition.

An API server stores an object in the version that was the storage version at its last write, and
status.storedVersions lists those versions. As long as an old version is in the list, no package
without that version can be installed: the objects could no longer be read.

Name the kind as for kubectl get: webapps, WebApp or webapps.example.com; or name the folder of
its package, as in ./cue/webapp. For each resource the command sends a patch that
changes nothing, so that the API server reads, converts and stores it. A concurrent change by
another client is kept. The old versions are removed from the definition only if every resource
was stored and the definition did not change in the meantime. You may interrupt the command, run
it again, or run it twice at the same time: resources that are already stored in the storage
version are not written again.

It refuses a definition whose versions differ without a conversion, and one whose webhook does
not answer: the operator has to run, with --webhook-bind-address. If a resource cannot be
converted or is rejected, the command names it and exits with 1, and the definition is unchanged.

Your user needs: get on customresourcedefinitions, update on customresourcedefinitions/status,
and get, list and patch on the resources in all namespaces. The operator needs no other permission.`

// migrateFlags are the settings of `operetta crd migrate`.
type migrateFlags struct {
	cluster clusterFlags
	dryRun  bool
	output  string
}

func newMigrate(s streams) *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate KIND|PACKAGE",
		Short: "Store all resources of a kind in the storage version",
		Long:  migrateLong,
		Example: `  # How many resources are there, and which versions are stored?
  operetta crd migrate webapps --dry-run

  operetta crd migrate webapps.example.com`,
		Args: usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 || strings.ContainsAny(typed, "./") {
				return completeFolders(cmd, args, typed)
			}
			return f.cluster.completeKinds(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.migrate(cmd.Context(), s, args[0])
		},
	}
	f.cluster.addFlags(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print how many resources would be rewritten, and write nothing")
	outputFlag(cmd, &f.output, formatText, formatJSON)
	return cmd
}

// migrated is what a migration says in JSON.
type migrated struct {
	Definition string `json:"definition"`
	// Storage is the version in which all is stored, and Old are the others that were listed.
	Storage string   `json:"storage"`
	Old     []string `json:"old"`
	DryRun  bool     `json:"dryRun"`
	// Objects is how many are stored in the storage version, or would be.
	Objects int `json:"objects"`
	Gone    int `json:"gone,omitempty"`
	// Failed are the objects that are not.
	Failed []failedObject `json:"failed,omitempty"`
}

// A failedObject is an object that was not stored, and why.
type failedObject struct {
	Object string `json:"object"`
	Why    string `json:"why"`
}

// migrate stores the resources of a kind anew.
func (f *migrateFlags) migrate(ctx context.Context, s streams, kind string) error {
	on, err := findTarget(f.cluster)
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := on.confirm(ctx, s); err != nil {
			return err
		}
	}
	printLinef(s.err, "note: this is about the cluster at %s (context: %s)", on.server(), on.contextName())
	m, name, err := readMigration(ctx, on, kind)
	if err != nil {
		return err
	}
	out := migrated{Definition: name, Storage: m.Storage(), Old: append([]string{}, m.Old()...), DryRun: f.dryRun}
	if len(out.Old) == 0 {
		return f.print(s, out)
	}
	if f.dryRun {
		if out.Objects, err = m.Count(ctx); err != nil {
			return err
		}
		return f.print(s, out)
	}
	shown := newProgress(s, name)
	m.Progress = func(done, all int) { shown.tell(done, all, unitResources) }
	done, err := m.Run(ctx)
	shown.end()
	out.Objects, out.Gone = done.Objects, done.Gone
	for _, failure := range done.Failures {
		out.Failed = append(out.Failed, failedObject{failure.Object, failure.Err.Error()})
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %s; run it again", storedSoFar(out))
	case err != nil:
		return fmt.Errorf("%w (%s)", err, storedSoFar(out))
	}
	if err := f.print(s, out); err != nil {
		return err
	}
	return failedMigration(s, out, done.Stopped)
}

// storedSoFar says how far a migration came that ended early.
func storedSoFar(m migrated) string {
	return fmt.Sprintf("%s stored in version %s, and status.storedVersions is as it was", count(m.Objects, "resource"), m.Storage)
}

// failedMigration prints what failed, and returns an error if something did.
func failedMigration(s streams, m migrated, stopped bool) error {
	if len(m.Failed) == 0 {
		return nil
	}
	for _, failed := range m.Failed {
		printLinef(s.err, "operetta: %s %s: %s", m.Definition, failed.Object, failed.Why)
	}
	if stopped {
		printLinef(s.err, "operetta: the rest was not tried")
	}
	return errReported
}

// print prints what a migration has done, or would do.
func (f *migrateFlags) print(s streams, m migrated) error {
	if f.output == formatJSON {
		return printJSON(s.out, m)
	}
	old := strings.Join(m.Old, ", ")
	switch {
	case len(m.Old) == 0:
		printLinef(s.out, "%s: nothing to do, all is stored in version %s", m.Definition, m.Storage)
	case m.DryRun:
		printLinef(s.out, "%s: %s would be stored in version %s; resources may be stored in %s", m.Definition, count(m.Objects, "resource"), m.Storage, old)
	case len(m.Failed) > 0:
		printLinef(s.out, "%s: %s stored in version %s, and %d not; status.storedVersions has %s still", m.Definition, count(m.Objects, "resource"), m.Storage, len(m.Failed), old)
	default:
		printLinef(s.out, "%s: %s stored in version %s; nothing is stored in %s any more", m.Definition, count(m.Objects, "resource"), m.Storage, old)
	}
	return nil
}

// readMigration reads the definition of a kind that is named as for kubectl get.
func readMigration(ctx context.Context, on target, kind string) (*migration.Migration, string, error) {
	definitions, err := apiextensions.NewForConfig(on.config)
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the cluster: %w", err)
	}
	objects, err := metadata.NewForConfig(on.config)
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the cluster: %w", err)
	}
	name, err := definitionNamed(ctx, on, kind)
	if err != nil {
		return nil, "", err
	}
	m, err := migration.Read(ctx, migration.Clients{Definitions: definitions.CustomResourceDefinitions(), Objects: objects}, name)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%s is the kind of no CustomResourceDefinition", kind)
	}
	return m, name, err
}

// definitionNamed returns the name of the definition of a kind, or of that of the package in a folder.
func definitionNamed(ctx context.Context, on target, kind string) (string, error) {
	if kind == "." || strings.Contains(kind, "/") {
		found, err := examineFolders(ctx, []string{kind}, examineCRD)
		if err != nil {
			return "", err
		}
		if len(found) != 1 {
			return "", usageError{fmt.Errorf("a migration is about one kind, and %s has %d packages", kind, len(found))}
		}
		return found[0].CRD.Name, nil
	}
	found, err := on.kindNamed(kind)
	if err != nil {
		return "", err
	}
	live, err := cluster.NewUncachedLive(on.config)
	if err != nil {
		return "", err
	}
	mapping, err := live.Client.RESTMapper().RESTMapping(found.GroupKind(), found.Version)
	if err != nil {
		return "", fmt.Errorf("looking up %s: %w", kind, err)
	}
	return mapping.Resource.GroupResource().String(), nil
}
