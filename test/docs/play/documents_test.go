package play

import "testing"

func TestTheReadmeDoesWhatItSays(t *testing.T) {
	newStage(t).play("README.md")
}

func TestTheTutorialDoesWhatItSays(t *testing.T) {
	newStage(t).play("docs/tutorial.md")
}
