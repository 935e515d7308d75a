// Package docs proves that the documentation is true. It has only tests.
//
// README.md and docs/tutorial.md are played: their files are written, their
// commands are run in their order, on a real control plane, and what they print
// is compared with what the text says. The reference, the command line and the
// reasons are generated from the code or held against it. The pictures of the
// architecture are held against what imports what.
//
//	go test ./test/docs                       // the first run builds a control plane
//	go test ./test/docs -short                // without what needs one
//	go generate ./test/docs                   // rewrite docs/reference.md and docs/cli.md
//
// # How a document is played
//
// Each fenced block is a step. What is to be done is told by its language:
//
//	cue, yaml   a file; its name stands in the sentence before the block
//	diff        a change of the file that the sentence before the block names
//	sh          commands that have to succeed; `make run` and `operetta run` stay
//	console     a command behind "$ ", and what it prints; a line of three dots
//	            stands for any lines
//
// Blocks without a language are pictures.
package docs

//go:generate go run ./gencontract
//go:generate go run ./gencli
