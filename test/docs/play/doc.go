// Package play proves that the README and the tutorial do what they say: their
// files are written, their commands are run in their order, on a real control
// plane, and what they print is compared with the text. The commands of the other
// pages are run as well, for their success. It has only tests.
//
//	go test ./test/docs/play           // the first run builds a control plane
//	go test ./test/docs/play -short    // skips everything
//
// Each fenced block of a document is a step. What is to be done is told by its
// language:
//
//	cue, yaml   a file; its name stands in the paragraph before the block
//	diff        a change of the file that the paragraph before the block names
//	sh          commands that have to succeed; `make run` and `operetta run` stay
//	console     a command behind "$ ", and what it prints; three dots stand for
//	            any text, and on a line of their own for any lines
//	mermaid     nothing: it is a picture, and so is a block without a language
package play
