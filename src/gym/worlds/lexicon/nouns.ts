// Countable nouns from which practice worlds name tables, columns and values.
// Written in the singular without article; words.ts splits the text and forms plurals.

/** People and roles: their rows have personal names. */
export const PERSON_NOUNS = `
accountant acrobat actor actuary adjuster admiral advisor advocate agent aide alchemist ambassador analyst anchor
angler animator announcer apprentice arbiter archaeologist archer architect archivist artisan artist assessor assistant
astronaut astronomer athlete attendant attorney auctioneer auditor author aviator baker ballerina banker barber baritone
baron bartender beekeeper biologist blacksmith bodyguard bookkeeper botanist bouncer bowler boxer brewer bricklayer
broker builder butcher butler cabinetmaker calligrapher campaigner candidate captain caregiver caretaker carpenter
cartographer cartoonist cashier caterer cellist champion chancellor chaplain chauffeur chemist choreographer cleaner
clerk climber clockmaker clown coach cobbler collector colonel columnist comedian commander commissioner composer
conductor confectioner constable consul consultant contestant contractor cook coordinator coroner correspondent
counselor courier critic crofter curator customer cutler cyclist dancer dealer decorator defender delegate
dentist deputy designer detective developer diplomat director diver docent doctor donor drafter dressmaker driver drummer
economist editor educator electrician embroiderer emperor employee engineer engraver entomologist entrepreneur envoy
examiner explorer exporter farmer farrier fencer fiddler finalist financier firefighter flautist florist
footballer forager forester founder freelancer gambler gardener general geologist gilder glassblower glazier goalkeeper
goldsmith golfer governor graduate grocer groundskeeper guard guardian guest guide guitarist gymnast hairdresser harpist
hatter herbalist herder hermit historian host hotelier hunter hydrologist illustrator importer innkeeper inspector
instructor insurer intern interpreter interviewer inventor investigator investor jeweler jockey joiner journalist judge
juggler juror keeper knight laborer landlord lawyer lecturer librarian lieutenant lifeguard linguist lobbyist locksmith
lodger logger lumberjack machinist magician magistrate manager marshal mason mathematician matron mayor mechanic
medic member mentor merchant messenger meteorologist miller miner minister missionary model monarch mover
musician narrator naturalist navigator negotiator neighbor newcomer notary novelist nurse officer operator optician
organist organizer orator ornithologist outfielder owner painter paramedic partner passenger patron paver peddler
percussionist performer pharmacist philosopher photographer physicist pianist pilgrim pilot pitcher planner plasterer
player plumber poet politician porter potter preacher president priest prince princess principal printer
producer professor programmer promoter prosecutor psychologist publisher pupil puppeteer quarterback rancher ranger
realtor rebel receptionist recruit referee regent reporter researcher resident restorer retailer reviewer rider ringmaster
roofer rower runner saddler sailor saxophonist scholar scientist scout scribe sculptor seamstress secretary
senator sergeant servant settler shareholder shepherd sheriff shoemaker shopkeeper silversmith skater skier smuggler
soldier soloist soprano speaker specialist sponsor sprinter squire stagehand statistician steward stonecutter
storyteller strategist striker student subscriber supervisor supplier surgeon surveyor swimmer tailor
tanner taster teacher teammate technician teller tenant tenor therapist thatcher tiler tinker toolmaker tourist trader
trainee trainer translator trapper traveler treasurer trumpeter trustee tutor typist umpire undertaker upholsterer usher
valet vendor veteran viceroy villager vintner violinist visitor vocalist volunteer voter waiter warden warrior watchmaker
weaver welder whaler winemaker witness worker wrestler writer zookeeper`;

/** Places, buildings and organizations: their rows have names of places or companies. */
export const PLACE_NOUNS = `
abbey academy agency airfield airline airport alley alliance altar annex aquarium archipelago arena armory arsenal asylum
atelier atoll atrium attic auditorium avenue bakery bank barn basin bastion bay bazaar beach bistro bookshop
borough boulevard boutique brewery bridge brook bureau bus_stop bungalow bunker butchery cabin cafe campsite campus canal
canteen canyon cape casino castle cathedral cave cellar cemetery chapel chateau circus citadel city clinic cloister club
coalition coast college colony commune company compound consulate convent corner corridor cottage council county court
courthouse courtyard cove creek crossing crypt dairy dam delta den depot desert diner district ditch dock
dockyard dormitory duchy dungeon embassy embankment emporium estate estuary factory fairground farm farmhouse federation
ferry_port field fjord foothill forest forge fort fortress foundation foundry fountain gallery garage garden garrison
gatehouse glacier glade gorge grange granary greenhouse grotto grove guesthouse guild gulf gym hall hamlet hangar harbor
headland heath hermitage highland highway hill homestead hospice hospital hostel hotel household hut inlet
inn institute island isthmus jetty junction kennel kindergarten kingdom kiosk kitchen laboratory lagoon lair lake lane
laundry league library lighthouse lobby lodge loft lounge manor mansion marina marketplace marsh mausoleum meadow mill
mine mission moat monastery moor mosque motel mountain municipality museum nation neighborhood newsroom nursery
observatory oilfield orchard orphanage outlet outpost paddock pagoda palace parish park parliament pass pasture pavilion
peak peninsula pharmacy pier plain planetarium plantation plateau playground plaza pond port prairie precinct prefecture
presbytery prison promenade province pub quarry quay railway ranch range reef refinery refuge region reservoir resort
restaurant ridge river road roundabout ruin saloon sanctuary sawmill school seminary settlement shed shelter shipyard
shire shop shrine sidewalk silo skyscraper slope smithy society spa spring square stable stadium station steppe store
storehouse strait stream street studio suburb subway summit supermarket swamp synagogue syndicate tannery tavern temple
terminal terrace territory theater tower town townhouse trail treasury trench tributary tunnel union university vale
valley vault vestry viaduct village villa vineyard volcano ward warehouse watchtower waterfall waterway wharf windmill
winery woodland workshop yard zone zoo`;

/** Everything else: rows have a title, an invented name or a code. */
export const THING_NOUNS = `
abacus accessory accident account achievement acorn adapter address adventure agenda agreement aircraft alarm album
algorithm almanac alloy alphabet amulet anchor_chain anecdote anklet antenna anthem antique anvil appetizer apple
appliance appointment apron arch arrow article artwork ashtray assembly asset assignment asteroid atlas atom attachment
attraction auction audit avalanche award axe axle baby_bottle backpack badge bag bagel ballad ballot bamboo_mat banana
bandage banjo banknote banner banquet bar_stool barge barometer barrel basket bassoon bat batch bath battery battle bead
beacon beaker beam bean bear bed beehive beetle bell belt bench berry bet bib bicycle bill binder binocular bird
biscuit blade blanket blazer blender blimp blouse blueprint boat bobbin boiler bolt bond bone bonnet book booking
booklet bookmark boomerang boot bottle bouquet bow bowl box bracelet bracket braid branch brand breed brick bridle
briefcase broadcast brochure brooch broom brush bubble bucket buckle bud budget buffalo bug bugle bulb bulletin bundle
buoy burner bush button buzzer cabinet cable cactus cage cake calculator calendar camel camera campaign canal_lock canary
candle cannon canoe canopy canvas capsule car caravan card cardigan cargo_crate carnival carol carpet carriage carrot
cart cartoon cartridge carving case cassette casserole cast cat catalog caterpillar cattle_pen cello census centipede
ceremony certificate chain chair chalice challenge chandelier chapter charger chariot charm chart charter check cheese
cherry chess_set chest chicken chime chimney chip chisel chord chore chronicle cigar cipher circle circuit citation
claim clamp clarinet class clause claw clip cloak clock clone closet cloud clove clue cluster coat cocktail coconut code
codec coffin coil coin collar collection comb comet comic command comment commission compass complaint
component composition compost_bin computer concept concert condition cone conference confession conflict connector
console constellation contact container contest contract convention conversation conveyor cookie cord cork corset
costume cottage_pie couch coupon course cow crab cracker cradle crane crate crater crayon cream creature credential crest
cricket crime crocodile crop crossbow crossword crow crowbar crown cruise crusade crust crystal cube cucumber cuff cup
cupboard curriculum curtain cushion cutlass cycle cylinder cymbal dagger daisy dashboard date_palm
deadline deal debate debt decade decal deck decoy decree deed defect delivery denture deposit desk dessert detour
device dial dialect diamond diary dictionary diet dinghy dinner dinosaur diploma directive disc discount discovery
disease dish dispatch display dispute diversion divider doc document dog doll dollhouse dolphin dome donation donkey
donut door doorbell dossier doughnut dove draft dragon dragonfly drain drama drawer drawing dream dress dresser drill
drink drone drum duck duel duet dumpling dye dynamo eagle earring earthquake easel eclipse ecosystem edict edition
eel effect egg elbow_pad election electrode elegy element elephant elevator elixir emblem emerald emission emperor_moth
enchantment encounter encyclopedia engagement engine ensemble entrance entry envelope epic epidemic episode epoch equation
eraser errand error eruption escalator essay etching event exam excavation exception excursion exercise exhibit
expedition expense experiment export extension eye_chart fable fabric facility faction fairy falcon fan fang farewell
faucet feast feather feature fee fence fern ferry fertilizer festival fiddle figurine file film filter fin finding
finger_puppet fir fire firearm firework fixture flag flagon flame flamingo flash flask fleet flight flip_chart float
flock flood floor flower fluid flute fly fog_lamp folder font footnote footprint fork form formula fossil fox fragment
frame franchise freezer freight_car fresco fridge frigate frog fruit fuel_tank fund funeral fungus funnel furnace fuse
gadget gait galaxy galleon game gargoyle garland garment gate gauge gavel gazelle gear gem genome germ geyser ghost gift
giraffe glass glaze globe glossary glove goat goblet goggle gondola gong gown grain gramophone grant grape graph
grasshopper grave gravestone grenade grid grievance grill grinder grocery_bag guideline guitar gun gust gutter hailstorm
hairpin halo hammer hammock hamper hamster handbag handbook handcuff handle handshake hanger harmonica harness harp
harpoon harvest hat hatch hawk hazard headline headset hearing heart_monitor heater hedge hedgehog heel heirloom
helicopter helmet hen herb herd heron hinge hippo hive hoax hoe holiday hologram holster honeycomb hood hook horn
hornet horse hose hound hourglass hull hurdle hurricane hydrant hyena hymn iceberg icicle icon idea idiom idol igloo
illness image implant impulse incentive incident index_card infection ingredient inheritance injury innovation inquiry
inscription insect insight inspection instance instruction instrument insurance_policy interview introduction invasion
invention inventory_item invitation invoice issue item ivory_comb jackal jacket jaguar jail_cell jar javelin
jelly jersey jet jewel jigsaw job joke journal journey joystick jug juice jumper junket kangaroo kayak kebab kettle key
keyboard kilt kimono kit kite kiwi knob knot koala label laboratory_test lace ladder ladle lamp lamppost lance
landmark landslide lantern laptop lark laser lasso latch lathe laurel law lawn_mower lawsuit layer leaflet lease
lecture ledger legacy legend lemon lemur lens leopard lesson letter lever license lichen lift ligament lily limb lime
limerick limousine line linen_sheet lining lion lipstick list listing litter_box lizard llama loan lobster locket locker
locomotive log logbook logo loom loophole lorry lot lotion lottery lotus loudspeaker lullaby lunch lute lynx lyric machine
magazine magnet magpie mailbox mallet mammoth mandate mandolin mango manifesto mannequin manual manuscript map maple
marathon marble march mark marker marriage mascot mask massage mast mat match matrix mattress maxim meal measure medal
medallion medication meeting megaphone melody melon memo memoir memorial memory menu mermaid message metal meteor meter
method microbe microphone microscope migration milestone mineral minnow mint mirror missile mitten mixer mixture moccasin
module mold mole molecule moment monitor monkey monologue monster monsoon monument moon mop moped mortgage mosaic mosquito
moss moth motion motor motorcycle motto mouthpiece movie muffin mug mule mummy mural muscle mushroom muskrat musket
mutation mystery myth nail napkin narrative nebula necklace needle negative nerve nest net network neuron newsletter newt
nickname nightgown nightmare nomination noodle notebook notice notification notion novel nozzle nugget number_plate nut
oak oar oath oatmeal object oboe observation obstacle occupation ocean octagon octopus offer offering ointment olive
omelet onion opera operation opinion option oracle orange orb orbit orchestra orchid ordeal order organ organism ornament
ostrich otter ottoman outbreak outfit outline oven overcoat owl oyster package packet pad paddle padlock page pageant pail
painting pair pajama pamphlet pan pancake panda panel panther papaya paper parachute parade paradox paragraph parasite
parasol parcel parrot particle partition party passage passport password pastry patch patent path patrol pattern paw
payment pea peach peacock peanut pear pearl pebble pedal pedigree pelican pellet pen penalty pencil pendant pendulum
penguin pension pepper perfume permit petal petition phantom phase pheasant phone photo phrase piano piccolo
pickle picnic picture pie pig pigeon pigment pill pillar pillow pin pine pineapple pinwheel pipe pipeline piston pit
pitchfork pivot pizza plague plan planet plank plant plaque plate platform platoon platter play playlist pledge plot plow
plug plum plume pocket podcast poem poison polar_cap policy poll polygon pony pool poppy porcelain_cup porch portal
portfolio portion portrait position post postcard poster pot potion pouch powder_keg practice prank prawn prayer
prediction premiere premise prescription present press prism prize probe problem procedure procession product profile
program project projector prompt proof propeller property prophecy proposal protein protest protocol prototype proverb
prune pudding puddle puffin pulley pulse puma pump pumpkin punch puppet puppy purchase purse puzzle pyramid python quail
quarrel quartet quasar quest question queue quilt quiver quota quotation rabbit raccoon race racket radar radiator
radio radish raffle raft rag raid rail rainbow raincoat rake rally ram ramp rapier rat raven razor reaction reactor
reading rebate rebellion receipt receiver reception recipe record recording recycling_bin reform refrain refund regatta
regiment regulation rehearsal relay relic remark remedy reminder remote renovation rental repair reply report
reptile request rescue research_grant reservation residue resolution resource response result retreat reunion revision
revolt revolver reward rhinoceros rhyme ribbon rice_cooker riddle rifle ring riot rite ritual rival_bid robe robin robot
rock rocket rod role roller romance roof room rooster root rope rose roster rotor route routine rower_seat ruby rudder rug
rule ruler rumor runway sabre sack sacrifice saddle safari safe saga sail salad salamander salary_slip salute
sample sandal sandwich sapphire sash satellite satire sauce saucer sausage saw saxophone scale scandal scanner scar
scarecrow scenario scene scent schedule scheme scholarship schooner scissor_blade scone scooter score_sheet scorpion scrap
screen screw screwdriver script scroll sculpture seagull seal seam season seat secret seed segment seizure selection seminar
sensor sentence sequel sequence serenade sermon server session setback shadow shampoo shark sheet shelf shell shield shift
ship shipment shirt shoe shooting shovel show shower shrimp shrub shutter shuttle siege sieve signal signature silhouette
simulation siren sitcom sketch skill skin_graft skirt skull slab sled sleeve slide sling slipper slogan sloop
slot snack snail snake snare sneaker snowball snowflake soap sock sofa software_tool solution sonata song sonnet soup
souvenir spade spaniel spark sparrow spear spectacle speech spell sphere sphinx spice spider spindle spine spirit
splinter sponge spoon spot spray sprout spur squad squid squirrel stage stain staircase stake stallion stamp
stanza staple star starfish statement statue statute stencil step stereo stew stick sticker sting stitch stock stone stool
stopwatch storm story stove straw strawberry strike string strudel stub stump style submarine subsidy suggestion suit
suitcase sundial sunflower supper surprise survey suspect sutra swallow swan sweater swing switch sword syllable symbol
symphony symptom synonym syringe syrup system table_lamp tablet tactic tag talent tale tambourine tank tap tape
tapestry target tariff tart task tassel tattoo tax_return taxi tea_set teapot tear telegram telescope tempest template
tent term test testimony textbook thermometer thicket thimble thistle thorn thread threat throne thumbtack thunderbolt
ticket tide tie tiger tile timber timer tin tip tissue title_deed toad toast toaster tomb tonic tool torch
tornado tortoise tournament toy tract tractor trade trademark tradition tragedy trailer train trait tram transaction
transcript transfer transformer transistor translation transplant trap tray treasure treat treatment treaty tree trial
triangle tribe tribute trick tricycle trigger trilogy trinket trio trip tripod trolley trombone trophy trouser_press
truck trumpet trunk tuba tube tugboat tulip tune turban turbine turkey turnip turret turtle tusk tutorial tuxedo twig
typewriter typhoon tyre umbrella unicorn uniform unit upgrade urn utensil vaccine vacuum valve vampire vase vector vegetable
vehicle veil vein venture verb verdict verse version vessel vest viaduct_arch video viola violation violin viper virus
visa vision vitamin voice volt_meter volume voucher vow voyage vulture waffle wager wagon waistcoat walkway wall wallet
walnut walrus waltz wand wardrobe warning warrant wash_basin wasp watch waterwheel wave wax_seal weapon weasel web wedding
wedge weed well whale wheel wheelbarrow whip whirlpool whisk whisker whistle widget wig wildfire window wing winch wire
wish wizard wombat wonder word wound wrap wreath wreck wren wrench wrist_band yacht yarn yogurt zebra zipper
zither`;
