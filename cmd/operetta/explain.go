package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
)

const explainLong = `Show how far a custom resource is and what it waits for: its components, each below what it depends
on, with the predicate or object that they wait for, since when, and what they block. Below each
component are its objects, and below a workload that is not ready its newest Pod that is not, with
the reason of Kubernetes: no node, the image, a crash, an unbound claim, a missing Secret.

It reads with your permissions and writes nothing. It needs no package and no running operator, and
says what you may not read. The same is in the status of the resource, without the objects.

Only the operator knows what triggered the last reconciles, which requests they cost, and which
watches exist, and only since it started. To ask it, use --operator-namespace, which reaches the
pod of the leader as kubectl port-forward does, or --operator-address. It answers every user who
may get the resource. For that, it is sent your token, or your certificate without its key: name
only an operator that you trust. It has to serve metrics over TLS. Without an operator, the last
writes to the objects are shown.

The exit code is 1 if the resource is not ready, for use in scripts.`

// explainFlags are the settings of `operetta explain`.
type explainFlags struct {
	cluster   clusterFlags
	operator  operatorFlags
	namespace string
	output    string
	watch     bool
}

func newExplain(s streams) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Show what a custom resource waits for",
		Long:  explainLong,
		Example: `  operetta explain webapp/nginx-app

  # Follow a rollout
  operetta explain webapp/nginx-app -n team-a --watch

  # What triggered the last reconciles, and what did they cost?
  operetta explain webapp/nginx-app --operator-namespace operetta-system`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return f.complete(cmd.Context(), typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.watch && f.output != formatText {
				return usageError{fmt.Errorf("--watch draws pictures: leave out -o %s", f.output)}
			}
			if err := f.operator.check(); err != nil {
				return err
			}
			read, err := f.reader(args)
			if err != nil {
				return err
			}
			if f.watch {
				return watchExplanation(cmd.Context(), s, read)
			}
			return printExplanation(cmd.Context(), s, f.output, read)
		},
	}
	f.cluster.addFlags(cmd)
	f.operator.addFlags(cmd)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the resource; that of the context by default")
	f.cluster.completeNamespaces(cmd)
	outputFlag(cmd, &f.output, formatText, formatJSON)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "draw it again whenever it changes, until Ctrl-C")
	return cmd
}

// complete returns what an argument may be: the kinds of packages, and behind a slash the names of the
// resources in the namespace. It is empty if the cluster cannot be asked.
func (f explainFlags) complete(ctx context.Context, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	on, live, err := f.cluster.connect()
	if err != nil {
		return nil
	}
	word, _, named := strings.Cut(typed, "/")
	if !named {
		kinds, _ := servedKinds(ctx, on, nil)
		var out []string
		for _, kind := range kinds {
			out = append(out, strings.ToLower(kind.Kind)+"/")
		}
		return out
	}
	kinds, err := servedKinds(ctx, on, []string{word})
	if err != nil {
		return nil
	}
	found, _ := live.ListLive(ctx, cluster.Selection{Kind: kinds[0], Namespace: cmp.Or(f.namespace, on.namespace)})
	var out []string
	for _, u := range found {
		out = append(out, word+"/"+u.GetName())
	}
	return out
}

// completeBehindPackage returns what may be typed where a package may come before a custom resource: folders, until one is
// there or the beginning of KIND/NAME is.
func (f explainFlags) completeBehindPackage(ctx context.Context, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && (typed == "" || strings.HasPrefix(typed, ".") || strings.HasPrefix(typed, "/")) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return f.complete(ctx, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeObject returns the objects that a custom resource has, by its inventory. If it is the same word that was
// typed, that is an object already, and there is nothing to complete.
func (f explainFlags) completeObject(ctx context.Context, resource, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	read, err := f.reader([]string{resource})
	if err != nil {
		return nil
	}
	r, err := read(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range r.Components {
		for _, o := range c.Objects {
			if name := strings.ToLower(o.Kind) + "/" + o.Name; strings.HasPrefix(name, strings.ToLower(typed)) {
				out = append(out, name)
			}
		}
	}
	return out
}

// readExplanation reads an explanation anew.
type readExplanation func(context.Context) (explain.Resource, error)

// reader returns what reads the resource that the arguments name. It errors if there is no such kind.
func (f explainFlags) reader(args []string) (readExplanation, error) {
	word, name, err := resourceArgument(args)
	if err != nil {
		return nil, err
	}
	on, live, err := f.cluster.connect()
	if err != nil {
		return nil, err
	}
	kind, err := on.kindNamed(word)
	if err != nil {
		return nil, err
	}
	ref, err := namespaced(live, kind, name, f.namespace, on.namespace)
	if err != nil {
		return nil, err
	}
	operator := f.operator.operator(on)
	return func(ctx context.Context) (explain.Resource, error) {
		r, err := explain.Reader{Cluster: live, Operator: operator}.Read(ctx, ref)
		if _, is := errors.AsType[*explain.NotFoundError](err); is {
			err = notFound(ref, word)
		}
		return r, err
	}, nil
}

// notFound is the error of a resource that does not exist, most often because its namespace is another one.
func notFound(ref object.Ref, word string) error {
	return fmt.Errorf("%s does not exist (operetta status %s lists those that do; -n names another namespace)", ref, word)
}

// resourceArgument returns the kind and the name in KIND/NAME or KIND NAME.
func resourceArgument(args []string) (word, name string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	return kindAndName(args[0])
}

// kindAndName returns the kind and the name in KIND/NAME.
func kindAndName(resource string) (word, name string, err error) {
	word, name, ok := strings.Cut(resource, "/")
	if !ok || word == "" || name == "" {
		return "", "", usageError{fmt.Errorf("%q is not KIND/NAME, such as webapp/nginx-app; operetta status lists all", resource)}
	}
	return word, name, nil
}

// namespaced returns a reference in the namespace that a flag names, or else the context.
func namespaced(live *cluster.Live, kind schema.GroupVersionKind, name, flag, ofContext string) (object.Ref, error) {
	ref := object.Ref{GroupVersionKind: kind, Name: name}
	scope, err := live.Scope(context.Background(), kind)
	if err != nil {
		return ref, err
	}
	if scope == cluster.Namespaced {
		ref.Namespace = cmp.Or(flag, ofContext)
	}
	return ref, nil
}

// printExplanation prints an explanation once. It errors if the resource is not ready.
func printExplanation(ctx context.Context, s streams, format string, read readExplanation) error {
	r, err := read(ctx)
	if err != nil {
		return err
	}
	err = s.printAs(format, r, func(palette explain.Palette) string { return r.Tree(palette, time.Now()) })
	if err == nil && r.Health != explain.Ready {
		err = errReported // the picture says why
	}
	return err
}

// watchExplanation draws an explanation again whenever it changes, until the context ends. On a terminal
// each picture takes the place of the one before.
func watchExplanation(ctx context.Context, s streams, read readExplanation) error {
	ticker := time.NewTicker(explainInterval)
	defer ticker.Stop()
	before := ""
	for {
		r, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && before == "" {
			return err
		}
		picture := r.Tree(newPalette(s.out), time.Now())
		if err != nil {
			picture = "operetta: " + err.Error() + "\n"
		}
		if picture != before {
			if _, err := io.WriteString(s.out, onScreen(s.out, picture)); err != nil {
				return err
			}
			before = picture
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// onScreen returns a picture with what makes it fill a terminal from the top, cut to its height. Elsewhere
// an empty line follows each picture.
func onScreen(w io.Writer, picture string) string {
	file, is := terminal(w)
	if !is {
		return picture + "\n"
	}
	lines := strings.SplitAfter(picture, "\n")
	// A terminal of a container has the height 0 until somebody sets it.
	if _, height, err := term.GetSize(int(file.Fd())); err == nil && height > 0 && len(lines) > height {
		all, kept := len(lines)-1, max(0, height-2) // nothing is behind the last line
		lines = append(lines[:kept], fmt.Sprintf("... and %d more lines\n", all-kept))
	}
	const home, erase = escape + "[H", escape + "[2J"
	return markTrusted(home+erase) + strings.Join(lines, "")
}
