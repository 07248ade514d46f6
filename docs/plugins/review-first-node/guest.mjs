// Nothing is pushed before it was reviewed.

import { Feature, allow, deny } from "./yoi_guest.mjs";

const feature = new Feature();
const branches = feature.state("branches");

feature.tool("Reviewed", ({ branch }) => {
  const known = branches.update((old) => [...(old ?? []).filter((other) => other !== branch), branch]);
  return `${known.length} reviewed`;
});

feature.hook("review-before-push", (call) => {
  const command = call.touches.find((touch) => touch.is === "shell")?.command ?? "";
  const isReviewed = (branches.get() ?? []).some((branch) => command.includes(branch));
  if (command.includes("git push") && !isReviewed) {
    return deny("this branch was not reviewed; read its diff and call Reviewed, then push");
  }
  return allow();
});

feature.run();
