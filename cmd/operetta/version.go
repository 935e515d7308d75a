package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"

	"cuelang.org/go/cue"
	"github.com/spf13/cobra"
	"operetta.dev/schemas"
)

// version is the product's version; a release sets it with -ldflags -X main.version=v1.2.3.
var version string

// versions are the versions that decide how a binary behaves.
type versions struct {
	// Operetta is the product's version.
	Operetta string `json:"operetta"`
	// CUE is the version of the evaluator.
	CUE string `json:"cue"`
	// Go is the version of the compiler.
	Go string `json:"go"`
	// Contract is the digest of the contract that packages are checked against.
	Contract string `json:"contract"`
}

func newVersion(s streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of operetta, CUE and the contract",
		Long: `Print the versions of operetta, of its CUE evaluator and of Go, and the digest of the
contract (schemas/operator). Two binaries with the same CUE version and the same contract
accept the same packages.`,
		Example: "  operetta version\n  operetta version -o json",
		Args:    usageArgs(cobra.ExactArgs(0)),
		RunE: func(*cobra.Command, []string) error {
			v, err := currentVersions()
			if err != nil {
				return err
			}
			if output == formatJSON {
				return printJSON(s.out, v)
			}
			_, err = fmt.Fprintf(s.out, "operetta  %s\ncue       %s\ngo        %s\ncontract  %s\n", v.Operetta, v.CUE, v.Go, v.Contract)
			return err
		},
	}
	outputFlag(cmd, &output, "text", formatJSON)
	return cmd
}

// currentVersions returns the versions of this binary.
func currentVersions() (versions, error) {
	digest, err := contractDigest()
	if err != nil {
		return versions{}, err
	}
	info, _ := debug.ReadBuildInfo()
	return versions{Operetta: productVersion(info), CUE: cueVersion(info), Go: runtime.Version(), Contract: digest}, nil
}

// productVersion returns the version of a release, or else of the module, or else the
// commit that was built.
func productVersion(info *debug.BuildInfo) string {
	switch {
	case version != "":
		return version
	case info == nil:
		return "unknown"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel " + s.Value
		}
	}
	return "devel"
}

// cueVersion returns the version of the evaluator's module, or, in a binary without
// that information, of the language.
func cueVersion(info *debug.BuildInfo) string {
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "cuelang.org/go" {
				return m.Version
			}
		}
	}
	return cue.LanguageVersion()
}

// contractDigest returns the digest over names and contents of the contract's files.
func contractDigest() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(schemas.Light(), "schemas/operator", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(schemas.Light(), name)
		if err != nil {
			return err
		}
		// The lengths keep "a"+"bc" apart from "ab"+"c".
		fmt.Fprintf(h, "%d %s %d ", len(name), name, len(data))
		h.Write(data)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the contract: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
