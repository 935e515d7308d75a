package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/signature"
	"operetta.dev/engine/source"
)

const pushLong = `Push the module of a package to a registry, for Packages and for other packages that import it.

The artifact is the one that cue mod publish makes of the module, byte by byte, so that the cue
command can fetch it as well, if the repository ends with the path of the module. The tag of the
reference is the version: v0.1.2 for a module of major version v0. The package is checked first,
as operetta vet checks it. What is pushed has to be what was checked: a module whose source is git
has everything committed.

The credentials are those of the cue command: cue login, or the configuration of Docker. A
registry on this machine is reached by plain HTTP, and so are those that --insecure-registry
names.

With --sign-key, the artifact is signed as cosign sign --key signs it without a transparency log,
so that cosign verify --key --insecure-ignore-tlog accepts it, and an operator that demands the
key. The key is one that cosign generate-key-pair has made, whose password is in COSIGN_PASSWORD,
or one in the form of PKCS #8 without a password. Signatures of other keys stay.

The command prints the source of a Package, with the digest that pins the content.`

// pushFlags are the settings of `operetta push`.
type pushFlags struct {
	quiet    bool
	insecure []string
	signKey  string
	output   string
}

// pushed is what was pushed, as JSON. Its source is that of a Package.
type pushed struct {
	Version  string       `json:"version"`
	SignedBy string       `json:"signedBy,omitempty"`
	Source   pushedSource `json:"source"`
}

type pushedSource struct {
	OCI pushedArtifact `json:"oci"`
}

type pushedArtifact struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Path      string `json:"path,omitempty"`
}

func newPush(s streams) *cobra.Command {
	var f pushFlags
	cmd := &cobra.Command{
		Use:   "push PACKAGE REFERENCE",
		Short: "Push a package to a registry",
		Long:  pushLong,
		Example: `  operetta push ./shop registry.example.com/example.com/operators:v0.1.2

  # Signed for operators that verify it by cosign.pub
  COSIGN_PASSWORD=... operetta push --sign-key cosign.key ./shop registry.example.com/example.com/operators:v0.1.2

  # Only the digest, for scripts
  operetta push -q ./shop registry.example.com/example.com/operators:v0.1.2`,
		Args:              usageArgs(cobra.ExactArgs(2)),
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0], args[1]) },
	}
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only the digest")
	cmd.Flags().StringArrayVar(&f.insecure, "insecure-registry", nil, "host of a registry that is reached by plain HTTP, such as registry.test:5000; repeat the flag for more")
	cmd.Flags().StringVar(&f.signKey, "sign-key", "", "file with a private key that signs the artifact, such as cosign.key; by default it is not signed")
	outputFlag(cmd, &f.output, formatYAML, formatJSON)
	return cmd
}

func (f pushFlags) run(ctx context.Context, s streams, dir, reference string) error {
	to, err := registry.ParseTarget(reference)
	if err != nil {
		return usageError{err}
	}
	dir, err = oneFolder([]string{dir})
	if err != nil {
		return err
	}
	signer, err := f.signer()
	if err != nil {
		return err
	}
	checked, err := checkedForPush(ctx, dir)
	if err != nil {
		return err
	}
	root, rel, err := source.ModuleOf(dir)
	if err != nil {
		return err
	}
	packed, err := registry.Pack(ctx, root, to.Tag)
	if err == nil {
		err = samePackage(checked, packed, rel)
	}
	if err != nil {
		return fmt.Errorf("package %s: %w", dir, err)
	}
	client := registry.New(registry.Options{Insecure: f.insecure})
	digest, err := client.Push(ctx, packed, to)
	if err != nil {
		return err
	}
	if signer != nil {
		if err := client.Sign(ctx, packed, to, digest, signer); err != nil {
			return fmt.Errorf("%s was pushed, and is not signed: %w", digest, err)
		}
	}
	if f.quiet {
		printLinef(s.out, "%s", digest)
		return nil
	}
	out := pushed{Version: packed.Version.String(), Source: pushedSource{pushedArtifact{Reference: to.String(), Digest: digest, Path: rel}}}
	if rel == "." {
		out.Source.OCI.Path = ""
	}
	if signer != nil {
		out.SignedBy = signer.Key.ID
	}
	return f.print(s, out)
}

// print prints the source of a Package with what was pushed.
func (f pushFlags) print(s streams, p pushed) error {
	printLinef(s.err, "pushed %s", p.Version)
	if p.SignedBy != "" {
		printLinef(s.err, "signed by the key %s", p.SignedBy)
	}
	if f.output == formatJSON {
		return printJSON(s.out, p)
	}
	printLinef(s.out, "source:")
	printLinef(s.out, "  oci:")
	printLinef(s.out, "    reference: %s", p.Source.OCI.Reference)
	printLinef(s.out, "    digest: %s", p.Source.OCI.Digest)
	if p.Source.OCI.Path != "" {
		printLinef(s.out, "    path: %s", p.Source.OCI.Path)
	}
	return nil
}

// passwordVariable has the password of a private key, as for cosign.
const passwordVariable = "COSIGN_PASSWORD"

// signer returns who signs the artifact, or nil. It comes first: what cannot be signed is not pushed.
func (f pushFlags) signer() (*signature.Signer, error) {
	if f.signKey == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.signKey)
	if err != nil {
		return nil, fmt.Errorf("--sign-key: %w", err)
	}
	out, err := signature.ParseSigner(text, []byte(os.Getenv(passwordVariable)))
	if errors.Is(err, signature.ErrPassword) {
		return nil, fmt.Errorf("--sign-key: %s: %w; %s has it", f.signKey, err, passwordVariable)
	}
	if err != nil {
		return nil, fmt.Errorf("--sign-key: %s: %w", f.signKey, err)
	}
	return out, nil
}

// checkedForPush returns the package in a folder once it has passed its checks.
func checkedForPush(ctx context.Context, dir string) (*source.Snapshot, error) {
	snapshot, err := readPackage(dir)
	if err != nil {
		return nil, err
	}
	found, err := commandExaminer().examine(ctx, snapshot, examineAll)
	if err != nil {
		return nil, err
	}
	return snapshot, found.Faults.OrNil()
}

// samePackage errors if what is pushed is not the package that was checked.
func samePackage(checked *source.Snapshot, packed *registry.Package, dir string) error {
	files, err := packed.Files()
	if err != nil {
		return err
	}
	pushed, err := loader.Module(checked.Name(), "", dir, files)
	if err != nil {
		return err
	}
	if pushed.Digest() != checked.Digest() {
		return errors.New("what would be pushed is not what was checked: files have changed meanwhile, or are not committed")
	}
	return nil
}
