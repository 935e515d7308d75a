package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/install"
)

// checkArgoCD errors if a flag says what else to install, or how: the patch must not be applied, or owned, with the rest.
func (f *installFlags) checkArgoCD(cmd *cobra.Command) error {
	if !f.argocd {
		return nil
	}
	var err error
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != "argocd" && flag.Name != "output" {
			err = usageError{errors.New("--argocd: it prints a patch for Argo CD and nothing to install; leave --" + flag.Name + " out")}
		}
	})
	return err
}

// printHealthChecks prints the patch by which Argo CD knows the health of the resources of packages.
func (f *installFlags) printHealthChecks(ctx context.Context, s streams, args []string) error {
	found, err := f.examine(ctx, args)
	if err != nil {
		return err
	}
	var kinds []schema.GroupKind
	for _, one := range found {
		kinds = append(kinds, schema.GroupKind{Group: one.CRD.Spec.Group, Kind: one.CRD.Spec.Names.Kind})
	}
	patch := install.ArgoCD(kinds)
	if f.output == formatJSON {
		return printJSON(s.out, patch)
	}
	return printManifests(s.out, f.output, []manifest{{
		comment: "kubectl -n argocd patch configmap argocd-cm --patch-file FILE",
		object:  patch,
	}})
}
