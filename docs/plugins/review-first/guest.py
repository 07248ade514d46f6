"""Nothing is pushed before it was reviewed."""

from yoi_guest import Feature, allow, deny

feature = Feature()
branches = feature.state("branches")


@feature.tool("Reviewed")
def reviewed(branch):
    def note(known):
        return [other for other in known or [] if other != branch] + [branch]

    return f"{len(branches.update(note))} reviewed"


@feature.hook("review-before-push")
def judge(call):
    commands = [touch["command"] for touch in call["touches"] if touch["is"] == "shell"]
    command = commands[0] if commands else ""
    if "git push" in command and not any(branch in command for branch in branches.get() or []):
        return deny("this branch was not reviewed; read its diff and call Reviewed, then push")
    return allow()


feature.run()
