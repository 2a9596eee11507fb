// How Allure 3 shows our results. `tox -e report` says by these variables what belongs to the run it builds:
//   ROACHPROOF_PROFILES  the hardware profiles, with commas: each is an environment of the report
//   ROACHPROOF_HISTORY   the file with the results of earlier reports, from which trends are drawn
//   ROACHPROOF_NAME      the report's name
import { readFileSync } from "node:fs";

const profiles = (process.env.ROACHPROOF_PROFILES ?? "laptop").split(",").filter(Boolean);
const name = process.env.ROACHPROOF_NAME ?? "Roachproof";
const ofProfile = (profile) => ({ labels }) =>
  labels.some((label) => label.name === "profile" && label.value === profile);

export default {
  name,
  historyPath: process.env.ROACHPROOF_HISTORY,
  historyLimit: 100,
  environments: Object.fromEntries(
    profiles.map((profile) => [profile, { name: `profile ${profile}`, matcher: ofProfile(profile) }]),
  ),
  categories: JSON.parse(readFileSync(new URL("categories.json", import.meta.url), "utf-8")),
  plugins: {
    awesome: {
      options: {
        reportName: name,
        singleFile: true,
        groupBy: ["epic", "feature", "story"],
        reportLanguage: "en",
        theme: "auto",
      },
    },
  },
};
