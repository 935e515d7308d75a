// Package docs proves that the documentation is true: what is generated is
// current, what is written by hand about the code agrees with the code, and links
// lead somewhere. It has only tests. Package play runs what the README and the
// tutorial tell their readers to do.
//
//	go test ./test/docs
//	go generate ./test/docs      // rewrite docs/reference.md and docs/cli.md
package docs

//go:generate go run ./gencontract
//go:generate go run ./gencli
