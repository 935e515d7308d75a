// Command gencontract writes docs/reference.md from the doc comments of the
// contract (schemas/operator) and of the predicates of health (schemas/health).
//
//	go run ./test/docs/gencontract           // write it
//	go run ./test/docs/gencontract -check    // fail if it is not current
//
// It reads the CUE as text: a field's type is printed as its author wrote it. A
// field without a doc comment is an error, and so is a mark about a field that
// does not exist.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// output is the generated file, from the root of the repository.
const output = "docs/reference.md"

func main() {
	check := flag.Bool("check", false, "fail if the file is not current, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "gencontract:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	want, err := generate(root)
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(output))
	if !check {
		return os.WriteFile(file, []byte(want), 0o666)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(have) != want {
		return fmt.Errorf("%s is not current; run go generate ./test/docs", output)
	}
	return nil
}

// findRoot returns the closest folder at or above the working directory that holds
// the repository: go run starts in the caller's folder, go generate in the
// package's.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "cue.mod", "module.cue")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in the repository", dir)
		}
	}
}
